"""The report: one page about a release."""
