"""Exact message passing on an NVIDIA card: the same program as on the processor, level by level."""
