"""A fitted distribution, and every question to it."""
