"""A local web page on a release: questions by clicking or in SQL, answered by its model."""
