"""A simulation on a local dask cluster of which a worker is killed; run by its test.

A process of its own, since dask opens servers and threads that would outlive a test.
"""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from validation import simulate
from validation.run import monte_carlo
from validation.run.cells import run_cell


def slow_cell(folder, *arguments, **options):
    """A cell that takes its time, and leaves a file for every time it was begun."""
    (Path(folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.3)
    return run_cell(*arguments, **options)


def main(folder):
    import dask
    from distributed import Client, LocalCluster

    from tests.validation.test_engine import MODEL, OPTIONS

    dask.config.set({"distributed.scheduler.worker-ttl": None})
    monte_carlo.run_cell = partial(slow_cell, folder)
    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    killed = []
    with LocalCluster(**options) as cluster, Client(cluster) as client:

        def kill_one(done, total):
            if done == 1:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        found = simulate(MODEL, executor=client.get_executor(), progress=kill_one, **OPTIONS)
    begun = len(list(Path(folder).iterdir()))
    print(json.dumps({"killed": killed, "begun": begun, "test_error": found.test_error.tolist()}))


if __name__ == "__main__":
    main(sys.argv[1])
