"""What `converged` promises of the square loss where labels are +-1 at random: 1e-6, not 1e-10."""

import pytest

import replica

SIGNS = dict(student="tanh", target="sign", r=1.1, c=1.0, gamma=0.9)


@pytest.mark.parametrize("lam", [1e-3, 0.1, 10.0])
def test_the_square_loss_of_random_labels_keeps_its_promise(lam):
    """Labels that are flipped with probability 0 are the target's signs, of which ridge regression
    is known to 1e-10."""
    at = dict(alpha=1.5, lam=lam)
    random = replica.solve(replica.SpikedRandomFeatures(**SIGNS, label_noise="flip:0"), **at)
    known = replica.solve(replica.SpikedRandomFeatures(**SIGNS), **at)
    for point, tolerance in ((random, 1e-6), (known, 1e-10)):
        assert point.converged
        assert max(point.residual, point.quadrature_error) <= tolerance
    assert random.test_error == pytest.approx(known.test_error, rel=1e-6)
    assert random.train_error == pytest.approx(known.train_error, rel=1e-6)
