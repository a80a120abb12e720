"""Marginal inference: from cliques to a plan, from a plan to marginals."""
