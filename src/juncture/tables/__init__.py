"""The nouns: domains, tables, queries, measurements, workloads, schemas."""
