"""How long an ordinary test may take: the whole of them is run before every commit."""

import os
import time

LIMIT = 6.0  # seconds on a machine that is as fast as a good one of 2026
SUM = 0.08  # seconds of such a machine for the sum in ``slowness``


def spent() -> tuple[float, float]:
    """Seconds so far: on the clock, and computed by this process and the children it waited for."""
    return time.perf_counter(), sum(os.times()[:4])


def slowness() -> float:
    """How many times slower than a good machine this one is now, 1 at least: shared servers
    compute at a half or a third of their speed while others use them."""
    start = time.process_time()
    sum(number * number for number in range(1_000_000))
    return max(1.0, (time.process_time() - start) / SUM)


def judge(
    before: tuple[float, float], after: tuple[float, float], slow: bool, pace: float = 1.0
) -> str | None:
    """What to say of a test that was started at ``before``, if it took too long on a machine
    ``pace`` times slower than a good one.

    The smaller of the two counts.  On a machine that is busy with something else the clock runs
    on while the test waits for a processor; and what several threads or processes compute at the
    same time adds up to more than anyone has to wait.
    """
    seconds = min(end - start for start, end in zip(before, after, strict=True))
    if slow or seconds <= LIMIT * pace:
        return None
    return (
        f"this test took {seconds:.1f} s, more than the {LIMIT * pace:.1f} s of an ordinary one: "
        "make it smaller, or mark it with pytest.mark.slow and keep a smaller one of the same thing"
    )
