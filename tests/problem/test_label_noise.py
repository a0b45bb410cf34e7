"""Laws of label noise: draws, mean labels and their moments, refusals."""

import numpy as np
import pytest

import replica
from replica import InvalidArgument
from replica.problem import activation, label_noise
from replica.problem.labels import mean_label


@pytest.mark.parametrize(
    "text",
    ["student:2", "student:x", "student", "outliers:2:1", "outliers:.1:-1", "outliers:.1", "flip",
     "flip:0.6", "flip:nan", "logistic:1", "cauchy", "", 3],
)  # fmt: skip
def test_laws_of_labels_are_checked(text):
    with pytest.raises(InvalidArgument, match="label_noise must be"):
        label_noise(text)


@pytest.mark.parametrize("text", ["outliers:0.2:9", "student:5", "flip:0.2", "logistic", "probit"])
def test_drawn_labels_follow_their_law(text):
    """Mean and variance of 2e5 labels, within five standard errors."""
    law, rng = label_noise(text), np.random.default_rng(0)
    count, target = 200_000, 0.4
    y = law.apply(np.full(count, target), rng)
    if law.binary:
        mean = 2 * float(law.probability(np.array(target))) - 1
        variance = 1 - mean**2
        assert set(np.unique(y)) == {-1.0, 1.0}
    else:
        mean, variance = target, law.variance
        # the fourth moment of Student's t with 5 degrees of freedom is 9 variances squared
        assert y.var() == pytest.approx(variance, rel=5 * np.sqrt(12 / count))
    assert y.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / count))


def test_zeros_of_a_target_are_found():
    flipped = mean_label(activation("he3"), label_noise("flip:0.1"))  # x^3 - 3x
    assert flipped.kinks == pytest.approx([-np.sqrt(3), 0, np.sqrt(3)], abs=1e-12)
    assert flipped(np.array([-3.0, 3.0])).tolist() == pytest.approx([-0.8, 0.8])


@pytest.mark.parametrize(
    ("text", "planes"),  # v and t of v.z = t
    [
        ("z1*(z2 - 1)", [[1, 0, 0], [0, 1, 1]]),
        ("z1/(z1 + z2)", [[1, 0, 0], [0.5**0.5, 0.5**0.5, 0]]),
        ("relu(z1)*z2", [[1, 0, 0], [0, 1, 0]]),
    ],
)
def test_planes_at_which_a_product_changes_its_sign(text, planes):
    """There its flipped label jumps; where the target bends, too."""
    of = replica.problem.target(text)
    found = np.array([[*v, t] for v, t in mean_label(of, label_noise("flip:0.1")).planes])
    found *= np.sign(found[:, :1] + 1e-9 * found[:, 1:2])  # of either side
    assert found[np.argsort(found[:, 0])] == pytest.approx(np.array(sorted(planes)), abs=1e-12)
