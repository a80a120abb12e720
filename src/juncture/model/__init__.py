"""A fitted distribution, and everything that can be asked of it."""
