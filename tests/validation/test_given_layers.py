"""The page on given layers at tiny sizes, and those of its limits that hold at any."""

import numpy as np
import pytest

from benchmarks import given_limits
from benchmarks.given_layers import NETWORKS, Scale, page

TINY = Scale(
    settings=[2, 10], sizes=(110, 140), draws=(2, 2),
    networks=NETWORKS[2:3], layers={100: 2, 150: 2},
)  # fmt: skip


@pytest.mark.slow
def test_the_page_is_written_and_goes_on_from_its_store(tmp_path):
    text = page(TINY, tmp_path, ["trained", "drawn"])
    assert text.count("Within 2 standard errors") == 2
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    assert kept
    assert page(TINY, tmp_path, ["trained", "drawn"]) == text
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")} == kept


@pytest.mark.parametrize("limit", ["linear_student", "rows_without_target"])
def test_limits_are_exact(limit):
    found, known, bar = getattr(given_limits, limit)(30)
    assert bar <= 1e-4
    np.testing.assert_allclose(found, known, rtol=bar)
