"""Which outliers of a spectrum are eigenvalues of their own at the size of a simulation."""

import replica
from validation.measure import eigenvalues


def test_outliers_from_is_where_simulated_ones_leave_the_bulk():
    step = replica.GradientStep(
        student="relu", target="sin", alpha0=4, eta=1.0, readout=[-1, 0.5, 2]
    )
    model = step.srf(beta=1.0)
    found = replica.spectrum(model, 2.0)
    assert found.outliers_from[0] < found.outliers_from[1] < 400 < found.outliers_from[2]
    values = eigenvalues(model, alpha=2.0, dimension=200, seeds=2, rng=0, beta=None)
    # the top of the bulk itself moves by n^(-2/3), 2 %
    assert ((values > 1.05 * found.edges.max()).sum(axis=1) == 2).all()


def test_just_above_its_size_an_outlier_lies_just_above_the_bulk():
    model = replica.SpikedRandomFeatures(student="tanh", target="sin", r=0.2, c=1.0, gamma=0.9)
    found = replica.spectrum(model, 2.0)
    (n,) = found.outliers_from
    assert 80 < n < 92
    largest = [
        eigenvalues(model, alpha=2.0, dimension=d, seeds=6, rng=0, beta=None).max(axis=1).mean()
        for d in (20, 200)
    ]
    top = found.edges.max()
    assert largest[0] < 1.02 * top  # n = 40
    assert 1.8 < largest[1] / top < 2.0  # n = 400, where (9.2) has its root at 1.89
