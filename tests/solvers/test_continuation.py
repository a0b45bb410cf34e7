"""Newton's method in the complex plane."""

import numpy as np

from solvers.continuation import newton_complex


def test_newton_gives_up():
    """x^2 + 1 from far away on the real axis: no root within reach."""

    def system(x, rows):
        return x**2 + 1, (2 * x)[..., None]

    _, settled, _ = newton_complex(system, np.array([[0.5 + 0j], [1j]]), reach=0.3)
    assert settled.tolist() == [False, True]
