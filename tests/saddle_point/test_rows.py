"""docs/theory.md 15: the network itself, its row covariance and the fluctuation of its row
norms."""

import numpy as np
import pytest

import replica
from replica.equivalence import table_at
from tests.oracles import equations_network as literal
from tests.oracles import equations_rows
from tests.problems import errors, step


@pytest.mark.parametrize(
    ("target", "alpha0", "eta", "alpha", "lam", "test", "train"),
    [  # the table of docs/theory.md 15
        ("sin", 0.3, 6.0, 2.0, 0.01, 0.6347090, 0.1559121),
        ("tanh", 0.3, 6.0, 1.0, 0.1, 0.3731705, 0.1290069),
        ("tanh", 0.5, 1.0, 3.0, 0.01, 0.1443159, 0.0661348),
        ("sin", 0.3, 3.0, 1.0, 0.01, 0.6683484, 0.0514001),
        # and below it
        ("tanh", 0.5, 5.0, 2.0, 0.01, 0.41259, None),
        ("tanh", 0.5, 20.0, 2.0, 0.01, 0.62417, None),
    ],
)
def test_references(target, alpha0, eta, alpha, lam, test, train):
    model = step(target=target, alpha0=alpha0, eta=eta).network(beta=1.0, row_norms=False)
    point = replica.solve(model, alpha=alpha, lam=lam)
    # printed to seven digits, or five
    assert point.test_error == pytest.approx(test, abs=6e-8 if train else 6e-6)
    assert train is None or point.train_error == pytest.approx(train, abs=6e-8)


@pytest.mark.parametrize("row_norms", [True, False])
@pytest.mark.parametrize(
    ("changes", "beta", "alpha", "lam"),
    [
        (dict(), 1.0, 2.0, 0.05),
        (dict(target="sin", alpha0=20.0, noise=0.2), 2.0, 0.7, 1e-3),
        (dict(student="erf", target="relu", eta=6.0), 0.5, 3.0, 0.5),
        (dict(student="sin", target="he1", alpha0=3.0, noise=1e-4), 2.0, 3.0, 0.01),
        (dict(target="sin", intercept=True, step_noise=0.5), 0.5, 0.3, 0.01),
        (dict(student="sigmoid", target="relu", readout=-0.7), 2.0, 0.5, 0.01),
    ],
)
def test_equations_as_they_stand(changes, beta, alpha, lam, row_norms):
    model = step(**changes).network(beta=beta, row_norms=row_norms)
    point = replica.solve(model, alpha=alpha, lam=lam)
    table = table_at(model, 3)
    made, noise = (
        model.step,
        model.noise if model.step.step_noise is None else model.step.step_noise,
    )
    fields = made.student, made.target, made.alpha0, made.eta, noise
    of = equations_rows.Rows(*fields, norms=row_norms, readout=made.readout.values[0])
    test, train = literal.solve(of, table, alpha, lam)
    # the literal derivatives are differences: 1e-3 steps of fourth order, so 1e-12, amplified
    # by cancellation to 1e-9
    assert point.test_error == pytest.approx(test, rel=3e-9)
    assert point.train_error == pytest.approx(train, rel=3e-9)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("changes", [dict(alpha0=np.inf), dict(eta=0.0)])
def test_without_noise_in_the_gradient_rows_are_isotropic(changes, beta):
    """b = 0; at equal norms the network is then the sRF, to the accuracy asked of both."""
    problem = step(target="sin", **changes)
    at = dict(alpha=[0.3, 1.0, 4.0] * 3, lam=np.repeat([1e-6, 0.1, 100.0], 3))
    network = errors(problem.network(beta=beta, row_norms=False), **at)
    assert network == pytest.approx(errors(problem.srf(beta=beta), **at), rel=1e-10)


def test_ever_less_noise_in_the_gradient():
    """b -> 0, as the student becomes linear: at equal norms the network becomes the sRF, in first
    order, which is extrapolated."""

    def apart(sign, b):
        third = np.sqrt(b / 18 * 0.5 / 3.0**2)  # b = eta^2 h_check / alpha0, h_check = 18 third^2
        problem = step(student=f"he1{sign}{third:.15f}*he3", target="sin")
        models = problem.network(beta=1.5, row_norms=False), problem.srf(beta=1.5)
        network, srf = (replica.solve(model, alpha=1.0, lam=0.05) for model in models)
        return network.test_error / srf.test_error - 1

    # of both signs, as powers of third are in the moments: what is left is of the order b^2
    once, twice = (np.mean([apart(sign, b) for sign in "+-"]) for b in (1e-5, 2e-5))
    assert once > 1e-7
    assert 2 * once - twice == pytest.approx(0, abs=1e-9)


def test_a_single_readout_value_is_a_learning_rate():
    halved = step(eta=6.0, readout=0.5).network(beta=1.0)
    plain = step(eta=3.0).network(beta=1.0)
    assert errors(halved) == pytest.approx(errors(plain), rel=1e-12)  # rounding


@pytest.mark.parametrize(
    ("law", "same"),
    [
        (dict(label_noise="outliers:1:0.3"), dict(noise=0.3)),
        (dict(label_noise="outliers:0.4:0", noise=0.1), dict(noise=0.1)),
        (dict(label_noise="flip:0"), dict(target="sign")),
    ],
)
def test_limits_of_label_noise(law, same):
    """Outliers everywhere are noise, signs never flipped are the target's."""
    for loss, rel in (("square", 1e-9), ("huber:0.5", 2e-6)):  # their quadrature tolerances
        one, other = (
            replica.solve(
                step(**{"target": "tanh"} | changes).network(beta=1.5), alpha=2, lam=0.1, loss=loss
            )
            for changes in (law, same)
        )
        assert one.test_error == pytest.approx(other.test_error, rel=rel)
