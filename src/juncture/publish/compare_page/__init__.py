"""The page that holds a release against the table it was made from."""
