"""Estimation: from noisy measurements to the model that fits them best."""
