"""What is published: the release file, synthetic records, the report, the explorer."""
