"""A simulation on a local dask cluster that fails in one of six ways, or loses a worker; run by its
test.

A process of its own, since dask opens servers and threads that would outlive a test.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

from validation import simulate
from validation.run import WorkerDied, monte_carlo
from validation.run.cells import run_cell

FAULTS = ("scheduler", "worker", "client", "cluster", "restart", "cancel")


def slow_cell(*arguments, **options):
    """A cell that takes its time."""
    time.sleep(0.5)
    return run_cell(*arguments, **options)


def deadly_cell(*arguments, **options):
    """A cell that takes its worker with it, as one that runs out of memory."""
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


def started(port):
    """A scheduler and its workers, as they are started by hand, on this machine alone."""
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    dask, address = [sys.executable, "-m", "dask"], f"tcp://127.0.0.1:{port}"
    options = dict(stderr=subprocess.DEVNULL)
    scheduler = subprocess.Popen([*dask, "scheduler", "--port", str(port), *here], **options)
    workers = ["--nworkers", "2", "--nthreads", "1", "--death-timeout", "5"]
    subprocess.Popen([*dask, "worker", address, *workers, *here], **options)
    return scheduler, address


def main(fault, store):
    import dask
    from distributed import Client, LocalCluster

    from tests.validation.test_engine import MODEL, OPTIONS

    dask.config.set(
        {"distributed.scheduler.worker-ttl": None, "distributed.comm.timeouts.connect": "3s"}
    )
    dask.config.set({"distributed.scheduler.allowed-failures": 1})
    monte_carlo.run_cell = deadly_cell if fault == "worker" else slow_cell
    if fault == "scheduler":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        scheduler, address = started(port)
        client = Client(address, timeout=60)
        client.wait_for_workers(2)
    else:
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        )
        client = Client(cluster)
    executor = client.get_executor()

    def break_it(done, total):
        if done != 1:
            return
        if fault == "scheduler":
            scheduler.kill()
        elif fault == "kill":
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        elif fault == "client":
            client.close()
        elif fault == "cluster":
            cluster.close()
        elif fault == "restart":
            client.restart(wait_for_workers=False)  # which dask gives 12 s for their imports
        elif fault == "cancel":
            client.cancel(list(executor._futures))

    begun = time.monotonic()
    try:
        simulate(MODEL, executor=executor, progress=break_it, store=store, **OPTIONS)
        error = None
    except WorkerDied as died:
        error = died.strerror
    print(json.dumps({"error": error, "seconds": time.monotonic() - begun}), flush=True)
    os._exit(0)  # what is left of the cluster is not waited for


if __name__ == "__main__":
    main(*sys.argv[1:])
