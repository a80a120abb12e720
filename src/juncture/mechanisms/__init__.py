"""Mechanisms: what to measure under a budget, and what to make of it."""
