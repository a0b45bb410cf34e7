"""The limit on the time of ordinary tests."""

import pytest

from tests.time_limit import LIMIT, judge

LONG = LIMIT + 0.1


@pytest.mark.parametrize(
    ("clock", "computed", "slow", "fails"),
    [
        (LONG, LONG, False, True),
        (LONG, LONG, True, False),  # marked
        (10 * LONG, 1.0, False, False),  # on a busy machine
        (1.0, 10 * LONG, False, False),  # in many threads
        (1.0, 1.0, False, False),
    ],
)
def test_what_takes_too_long(clock, computed, slow, fails):
    message = judge((5.0, 7.0), (5.0 + clock, 7.0 + computed), slow)
    assert (message is not None) == fails
    assert not fails or f"{LONG:.1f} s" in message
