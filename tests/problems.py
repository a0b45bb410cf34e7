"""Problems that tests of several packages share, and points to solve them at."""

import numpy as np

from replica import GradientStep, SpikedRandomFeatures, solve

PUBLISHED = GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)  # docs/theory.md 13
PRINTED = {  # its test and training errors at beta = 1, lam = 0.1, by alpha
    0.2: (0.0484829, 0.0124938), 0.9: (0.0425039, 0.0168595), 1.6: (0.0373113, 0.0195898),
    2.3: (0.0343047, 0.0211855), 3.0: (0.0325182, 0.0221979),
}  # fmt: skip
MODEL = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.2, gamma=0.8, beta=1.5)
THREE = GradientStep(student="tanh", target="sin", steps=[(2, 1)] * 3)  # its last row
OUTLIERS = SpikedRandomFeatures(
    student="tanh", target="sin", r=1.1, c=1.0, gamma=0.97, noise=0.05, label_noise="outliers:0.1:9"
)
FLIPPED = SpikedRandomFeatures(
    student="relu", target="he1", r=1.0, c=1.0, gamma=0.8, beta=0.7, label_noise="flip:0.1"
)
RAGGED = SpikedRandomFeatures(  # three groups that have nothing in common
    student="sigmoid", target="sin", r=[0.3, 1.2, -0.7], c=[1.0, 0.6, 2.0], bias=[0, -1, 0.5],
    fractions=[0.2, 0.5, 0.3], gamma=0.7, beta=1.3, noise=0.1,
)  # fmt: skip


def step(**changes):
    """One giant step of a network whose own theory is far from its sRF's."""
    return GradientStep(**dict(student="tanh", target="tanh", alpha0=0.5, eta=3.0) | changes)


POINTS = dict(alpha=np.array([0.3, 1.0, 1.3, 3.0]), lam=np.array([0.1, 1e-4, 0.01, 1.0]))

# Of the same points twice: a process does its first few in Python and the rest by compiled code,
# which adds in another order. Sums differ by 1e-15, and answers by some hundred times that.
ORDER_OF_SUMS = 1e-12


def errors(model, **at):
    """Of test and training, at these points or others."""
    places = zip(*(at or POINTS).values(), strict=True)
    points = [solve(model, alpha=alpha, lam=lam) for alpha, lam in places]
    return np.array([[point.test_error, point.train_error] for point in points]).T
