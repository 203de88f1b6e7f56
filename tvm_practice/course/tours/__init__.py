"""What running a chapter shows: tables, plots, comparisons. A learner need not read them."""
