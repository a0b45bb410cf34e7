"""The page on linear probes at a tiny size, and the figure of digits."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed: .[test]")

from sklearn.linear_model import Ridge

from benchmarks.probe import Scale, page
from benchmarks.probe_data import tables
from benchmarks.probe_uses import over_penalties

LOSSES = "square", "logistic"
TINY = Scale(names=("wine",), losses=LOSSES, sizes=(30,), draws=(2, 2), hands=2)


@pytest.mark.slow
def test_the_page_is_written_and_goes_on_from_its_store(tmp_path):
    text = page(TINY, tmp_path, None, ["agreement", "penalties"])
    rows = [line for line in text.splitlines() if line.startswith("| wine")]
    # its summary; a penalty at three numbers of samples; two losses, two of these, two penalties
    assert len(rows) == 1 + 3 + 2 * 2 * 2
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    assert kept
    assert page(TINY, tmp_path, None, ["agreement", "penalties"]) == text
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")} == kept


def test_errors_over_penalties_are_those_of_scikit_learn():
    of = next(table for table in tables(None) if table.name == "diabetes")
    train, unseen = (of.features[:60], of.labels[:60]), (of.features[60:], of.labels[60:])
    alphas = [0.1, 30.0]
    fits = [Ridge(alpha=alpha).fit(*train).predict(unseen[0]) for alpha in alphas]
    expected = [np.mean((fit - unseen[1]) ** 2) for fit in fits]
    # two ways to solve one system
    np.testing.assert_allclose(over_penalties(*train, *unseen, alphas), expected, rtol=1e-10)
