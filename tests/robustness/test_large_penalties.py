"""Where the penalty is not much less than n, the limit d -> inf is far from any network."""

import json

import pytest

import replica
from tests.cli.commands import validate
from tests.problems import PUBLISHED as STEP
from validation import compare


def test_a_comparison_takes_the_theory_at_the_simulated_dimension():
    found = compare(
        STEP, alpha=1.0, lam=1e4, dimension=100, seeds=5, rng=0, beta=1.0, simulated="srf"
    )
    assert found.agrees
    assert found.checks["test_error"].theory[0, 0] == pytest.approx(
        0.430, abs=0.001
    )  # simulated: .437 +- .003
    limit = replica.solve(STEP.srf(beta=1.0), alpha=1.0, lam=1e4)
    assert limit.test_error == pytest.approx(0.046, abs=0.001)


@pytest.mark.slow
def test_a_theory_that_is_not_found_at_the_dimension_is_not_replaced_by_the_limit(capsys, caplog):
    """A Gaussian readout: the limit, .0252, is 20 % below what is simulated at d = 100."""
    line = "compare --student tanh --target sin --alpha0 20 --eta 3 --readout gaussian --theory srf"
    line += " --alpha 1 --lam .1 --loss huber:0.3 --dimension 100 --seeds 2 --rng 0 --json"
    status = validate(line)
    out, _ = capsys.readouterr()
    theory, point = json.loads(out)["points"]
    if theory["test_error"] is None:
        assert (status, point["test_error_z"]) == (1, None)
        assert "1 of 1 points did not converge" in caplog.text
    else:
        assert theory["test_error"] == pytest.approx(point["test_error"], rel=0.2)
        assert theory["test_error"] > 1.1 * 0.0252
