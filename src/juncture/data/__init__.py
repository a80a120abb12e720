"""Reading, describing and sampling tabular data."""
