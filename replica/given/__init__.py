"""The readout of a given first layer, and of given features.  docs/theory.md 20"""
