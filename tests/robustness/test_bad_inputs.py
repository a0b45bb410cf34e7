"""Every bad input of ``inputs`` is refused in a sentence; a few of each kind in an ordinary run."""

import itertools

import pytest

from .commands import run_command
from .inputs import all_inputs

INPUTS = list(all_inputs())
EACH = 67  # of the inputs one is tried in an ordinary run


def judge(given):
    """What went wrong with one bad input; empty where it was answered as it should be."""
    ended = run_command(given.arguments, given.files)
    accepted = given.refused and ended.status != 2
    fault = ended.fault or (accepted and f"status {ended.status} where it should be refused")
    return fault and f"{fault} ({ended.err[-300:]!r})"


def name(given):
    return f"{given.theme}: {' '.join(given.arguments)[:120]}"


@pytest.mark.parametrize("given", INPUTS[::EACH], ids=name)
def test_a_bad_input_is_refused(given):
    assert not judge(given)


@pytest.mark.slow
@pytest.mark.parametrize("theme", sorted({given.theme for given in INPUTS}))
def test_all_of_a_theme_are_refused(theme):
    faults = [(given, judge(given)) for given in INPUTS if given.theme == theme]
    assert not list(itertools.islice((f"{name(g)} {fault}" for g, fault in faults if fault), 5))
