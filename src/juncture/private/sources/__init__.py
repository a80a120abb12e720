"""Where private rows are read and counted."""
