"""Pages for people: the report and its parts."""
