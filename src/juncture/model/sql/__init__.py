"""SELECT statements as factored queries."""
