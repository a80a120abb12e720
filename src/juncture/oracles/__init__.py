"""Marginal oracles: from potentials on cliques to the marginals of the model they define."""
