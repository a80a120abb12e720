"""Complete workflows from a private table to a release."""
