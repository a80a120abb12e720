"""A local web page about a release: its model answers questions asked by clicking or in SQL."""
