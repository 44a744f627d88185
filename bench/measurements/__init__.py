"""One file a measurement: its docstring says what it measures, its `measure()` gives the results."""
