"""The limit on the time of ordinary tests."""

import subprocess
import sys
import time

import pytest

from tests.time_limit import LIMIT, judge, spent

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


def test_work_counts_and_waiting_does_not():
    """That of children too, once they have ended."""
    before = spent()
    time.sleep(0.2)
    waited = spent()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    worked = spent()
    assert waited[0] - before[0] > 0.19
    assert waited[1] - before[1] < 0.1
    assert worked[1] - waited[1] > 0.02
