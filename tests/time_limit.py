"""How long an ordinary test may take: the whole of them is run before every commit."""

import os
import time

LIMIT = 10.0  # seconds: shared servers are three times slower, and 3 s on a good one is meant


def spent() -> tuple[float, float]:
    """Seconds so far: on the clock, and computed by this process and the children it waited for."""
    return time.perf_counter(), sum(os.times()[:4])


def judge(before: tuple[float, float], after: tuple[float, float], slow: bool) -> str | None:
    """What to say of a test that was started at ``before``, if it took too long.

    The smaller of the two counts.  On a machine that is busy with something else the clock runs
    on while the test waits for a processor; and what several threads or processes compute at the
    same time adds up to more than anyone has to wait.
    """
    seconds = min(end - start for start, end in zip(before, after, strict=True))
    if slow or seconds <= LIMIT:
        return None
    return (
        f"this test took {seconds:.1f} s, more than the {LIMIT:g} s of an ordinary one: make it "
        "smaller, or mark it with pytest.mark.slow and keep a smaller one of the same thing"
    )
