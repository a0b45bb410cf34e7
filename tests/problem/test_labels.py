"""Labels of other laws in optima, derivatives, bounds and learned functions."""

from dataclasses import replace

import numpy as np
import pytest

from replica import InvalidArgument, bounds, gradient, learned_function, optimal_lambda, solve
from tests.problems import FLIPPED, OUTLIERS


@pytest.mark.parametrize("model", [FLIPPED, OUTLIERS], ids=["flipped", "outliers"])
def test_optimal_penalty(model):
    """The lowest of a fine scan around it."""
    best = optimal_lambda(model, alpha=1.0, lam=(1e-2, 1e3))
    assert best.converged
    assert not best.at_edge
    around = np.exp(np.linspace(-0.3, 0.3, 7)) * best.lam
    scan = [solve(model, alpha=1.0, lam=lam).test_error for lam in around]
    assert int(np.argmin(scan)) == 3
    assert scan[3] == pytest.approx(best.test_error, rel=1e-9)  # the same equations


def test_outliers_are_noise_of_their_variance_to_ridge_regression():
    """0.1 times 9, on top of 0.05: docs/theory.md 4 knows the variance of labels alone."""
    plain = replace(OUTLIERS, label_noise=None, noise=0.95)
    for at in (dict(alpha=0.7, lam=0.1), dict(alpha=2.0, lam=3.0)):
        one, two = (gradient(model, **at) for model in (OUTLIERS, plain))
        assert one.point.test_error == pytest.approx(two.point.test_error, rel=1e-12)  # rounding
        for name, slope in two.test_error.items():
            # the same table to rounding; derivatives are good to some 1e-9 of the error
            assert one.test_error[name] == pytest.approx(slope, rel=1e-7, abs=1e-9)
        learned = [learned_function(model, **at).mean([0.5, 2.0]) for model in (OUTLIERS, plain)]
        np.testing.assert_allclose(*learned, rtol=1e-9)  # its equations are solved to 1e-10


def test_bounds_are_those_of_the_mean_label():
    """A tenth of flips leaves 0.8 sign: what can be learned of it is 0.64 of the sign's."""
    plain = replace(FLIPPED, target="sign", label_noise=None)
    one, two = (bounds(model) for model in (FLIPPED, plain))
    for name in ("lower", "upper", "linear"):
        # quadrature of the same discontinuous function: its tolerance
        assert getattr(one, name) == pytest.approx(0.64 * getattr(two, name), rel=1e-9)


def test_what_only_ridge_regression_has_is_refused():
    with pytest.raises(InvalidArgument, match="added to the target"):
        learned_function(FLIPPED, alpha=1.0, lam=0.1)
