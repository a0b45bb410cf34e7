"""Records that the functions of one group pass on, at one point (alpha, lambda)."""

from collections import namedtuple

Pair = tuple[float, float]
Triple = tuple[float, float, float]
Matrix = tuple[float, float, float, float]  # two by two, row by row

# E[R {1, a, b}] and E[R^2 {a, b, ab}], with R = 1 / (1 + V), a = mu_1^2, b = mu_2^2
Averages = namedtuple("Averages", "R Ra Rb RRa RRb RRab")
# V1, c_e, and derivatives of log V1 and of log p in log W1, with p = V1 / (c_e V2)
Bulk = namedtuple("Bulk", "V1 c slope p_slope")
# m of (4.5) and overlaps with special directions, (theta, chi, psi) or an array, and conjugates
Signal = namedtuple("Signal", "m m_hat special special_hat")
# overlaps, conjugates and errors at one point, and the unknown W1 of its equations
Point = namedtuple("Point", "V1 V2 Q1 q2 V1_hat V2_hat X1 X2 test train W1 signal")
