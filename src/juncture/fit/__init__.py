"""From noisy measurements to the model that fits them best."""
