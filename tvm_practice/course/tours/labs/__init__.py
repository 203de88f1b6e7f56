"""What running a lab shows: for each lab a module with `lane`, and `report` if there is one."""
