"""Finite-size experiments that check the theory."""
