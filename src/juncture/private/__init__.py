"""The trust boundary: only here is private data read and noise added."""
