"""Successive approximations: what is computed, when it stops, what is said of the answer."""

import itertools

import numpy as np
import pytest

from solvers.settle import settle


def gap(before, now):
    return abs(now - before)


def test_the_answer_is_that_of_the_finer_of_two_that_agree():
    settled = settle([1, 2, 3, 4], lambda n: 2.0**-n, gap, tol=0.13)
    assert (settled.value, settled.candidate, settled.change) == (0.125, 3, 0.125)
    assert settled.met


def test_a_change_equal_to_the_tolerance_is_small_enough():
    assert settle([1, 2], lambda n: 2.0**-n, gap, tol=0.25).met


def test_nothing_is_computed_beyond_what_is_needed():
    made, computed = [], []

    def candidates():
        for n in itertools.count(1):
            made.append(n)
            yield n

    def compute(n):
        computed.append(n)
        return 2.0**-n

    settle(candidates(), compute, gap, tol=0.1)
    assert made == computed == [1, 2, 3, 4]


def test_distance_is_told_which_answer_came_first():
    pairs = []
    settle("abc", str.upper, lambda before, now: pairs.append((before, now)) or 1.0, tol=0.0)
    assert pairs == [("A", "B"), ("B", "C")]


def test_candidates_that_run_out_leave_the_last_answer_and_its_change():
    settled = settle([1, 2, 3], lambda n: 2.0**-n, gap, tol=1e-6)
    assert (settled.value, settled.candidate, settled.change) == (0.125, 3, 0.125)
    assert not settled.met


def test_a_single_candidate_is_never_enough():
    settled = settle([7], float, gap, tol=1e6)
    assert (settled.value, settled.change, settled.met) == (7.0, np.inf, False)


def test_an_undefined_change_is_not_a_small_one():
    settled = settle([np.nan, 1.0, 1.0], float, gap, tol=1.0)
    assert settled.value == 1.0
    assert settled.change == 0.0
    settled = settle([1.0, np.nan], float, gap, tol=np.inf)
    assert np.isnan(settled.change)
    assert not settled.met


def test_no_candidates_are_refused():
    with pytest.raises(ValueError, match="no candidates"):
        settle([], float, gap, tol=1.0)
