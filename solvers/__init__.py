"""Numerical methods that know nothing of networks: quadrature, roots, minima, fixed points."""
