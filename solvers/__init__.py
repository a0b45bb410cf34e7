"""Numerics that know nothing of networks: quadrature, fixed points, Newton, Marchenko-Pastur."""
