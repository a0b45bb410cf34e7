"""A network at its own input dimension: rows with loadings of order 1/sqrt(d).
docs/theory.md 23"""

from .evaluate_network import LEAST_OF_LIMIT, evaluate_at_dimension, products_per_fit
