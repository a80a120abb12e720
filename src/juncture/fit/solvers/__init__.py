"""Optimisation methods over the marginal polytope: frozen configurations behind one protocol."""
