"""What is given away: the release file, records, the report, the explorer."""
