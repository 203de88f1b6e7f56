"""What a compiled model checks when it is called, which its generated code does itself."""
