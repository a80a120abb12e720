"""Whole paths from a private table to a release."""
