"""Many random points over all the ranges that are promised: ``python -m benchmarks.campaign``.

Counted are what converged, what was flagged and why, what was raised, what does not keep to what is
promised, and what took more time or memory than a point may.  A part of what converged is solved a
second time (``second.py``).  Writes CAMPAIGN.md beside this file.

What came of each point is kept in a file of its kind, in a folder of the last commit that changed
the library, so that a run goes on where one was stopped: after ``--minutes``, or by Ctrl-C.
"""

import collections
import contextlib
import json
import multiprocessing
import resource
import subprocess
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer import Option

import replica
from replica.files import write_file
from replica.saddle_point import ridge
from solvers import resources
from solvers.quadrature import QuadratureError
from solvers.resources import one_thread

from . import second
from .pages import paragraphs, table
from .random_points import KINDS, broken, drawn

CAMPAIGN_PAGE = Path(__file__).with_name("CAMPAIGN.md")
COUNTS = {"ridge": 1500, "losses": 400, "networks": 300}
# each so-manieth is given to the second solver, which knows a quarter of ridge's and a tenth of the
# others: a tenth of each kind is solved again
AGAIN = {"ridge": 2, "losses": 1, "networks": 1}
# 20 s, and what is done between two looks at the clock; bytes of the process
LONGEST, LARGEST = 20.5, 1e9
PEAK = Path("/proc/self/clear_refs"), Path("/proc/self/status")
LISTED = 5  # points of a kind that took longest

Record = dict[str, Any]


def warm() -> None:
    """What a process does once: imports, and the compiled kernel.  Time limits count the
    processor's seconds, so that other work on the machine flags no point."""
    warnings.simplefilter("ignore")
    resources.monotonic = time.process_time
    ridge.calls_of_one_group[0] = 1000
    drawn("networks", 0).solve(drawn("networks", 0).model())


def peak_memory() -> float:
    """Peak of the process in bytes: since ``forget_peak`` on Linux, of all its life elsewhere."""
    with contextlib.suppress(OSError, StopIteration):
        lines = PEAK[1].read_text().splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def forget_peak() -> None:
    """Let ``peak_memory`` start anew, where that is possible."""
    with contextlib.suppress(OSError):
        PEAK[0].write_text("5")


def measured(kind: str, number: int) -> Record:
    """What came of one point: outcome, cause, processor's seconds, bytes; of some that converged
    also how far they are from their second solution, and whether that is too far."""
    problem = drawn(kind, number)
    record: Record = {"number": number, "problem": str(problem), "apart": None, "off": False}
    forget_peak()
    start, point = time.process_time(), None
    with one_thread():
        try:
            point = problem.solve(problem.model())
            record["outcome"] = "converged" if point.converged else "flagged"
            record["cause"] = point.status.value
            if wrong := broken(kind, point):
                record |= {"outcome": "broken", "cause": wrong}
        except QuadratureError as error:  # said of what the step makes of the network
            record |= {"outcome": "flagged", "cause": str(error).partition("(")[0]}
        except Exception as error:
            record |= {"outcome": "raised", "cause": f"{type(error).__name__}: {error}"}
        record |= {"seconds": time.process_time() - start, "bytes": peak_memory()}
        if record["outcome"] == "converged" and number % AGAIN[kind] == 0:
            assert point is not None
            record["apart"], record["off"] = second.distance(problem, point) or (None, False)
    return record


def library_commit() -> str:
    """The last commit that changed the library, and its date; and whether there are changes."""

    def git(*command: str) -> str:
        run = ["git", *command, "--", "replica", "solvers"]
        return subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()

    changed = " with changes" if git("status", "--porcelain") else ""
    return git("log", "-1", "--format=%h of %cs") + changed


def read(file: Path) -> dict[int, Record]:
    """The records of a file, by number."""
    records = json.loads(file.read_text()) if file.exists() else []
    return {record["number"]: record for record in records}


def run(kind: str, numbers: range, file: Path, executor: Any, workers: int, end: float) -> None:
    """Measure what the file lacks, until the end of the time; each point is written at once."""
    records, waiting = read(file), set()
    left = (n for n in numbers if n not in records)
    while True:
        while len(waiting) < workers and time.monotonic() < end:
            number = next(left, None)
            if number is None:
                break
            waiting.add(executor.submit(measured, kind, number))
        if not waiting:
            return
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for record in (future.result() for future in done):
            records[record["number"]] = record
            if record["outcome"] != "converged" or record["off"]:
                print(kind, record["number"], record["outcome"], record["cause"], flush=True)
        write_file(file, json.dumps(list(records.values()), indent=0).encode())


def row(kind: str, commit: str, records: list[Record]) -> list[str]:
    """The line of a kind, of the library of a ``commit``."""
    count, outcomes = len(records), collections.Counter(r["outcome"] for r in records)
    seconds, peak = [r["seconds"] for r in records], max(r["bytes"] for r in records)
    middle, most = np.quantile(seconds, [0.5, 0.99])
    compared = [r for r in records if r["apart"] is not None]
    cells = [kind, commit, f"{count} of {COUNTS[kind]}"]
    cells += [f"{outcomes[name] / count:.1%}" for name in ("converged", "flagged")]
    cells += [str(outcomes[name]) for name in ("raised", "broken")]
    cells += [str(sum(s > LONGEST for s in seconds))]
    cells += [str(sum(r["bytes"] > LARGEST for r in records))]
    cells += [f"{middle:.3f}, {most:.1f}, {max(seconds):.1f} s", f"{peak / 1e6:.0f} MB"]
    return [*cells, str(len(compared)), str(sum(r["off"] for r in compared))]


def last_records(store: Path, kind: str) -> tuple[str, list[Record]]:
    """The commit of which a kind was measured last, and its records."""
    files = sorted(store.glob(f"*/{kind}.json"), key=lambda file: file.stat().st_mtime)
    return files[-1].parent.name.replace("-of-", " of "), list(read(files[-1]).values())


def page(commits: dict[str, str], records: dict[str, list[Record]]) -> str:
    """The page: a line for every kind, the causes of flags, and the points to look at."""
    heads = "kind, library of, points, converged, flagged, exceptions, NaN or worse without a flag"
    heads += ", above 20 s, above 1 GB, median; 99 %; longest, largest, solved again, off"
    columns = [head.replace(";", ",") for head in heads.split(", ")]
    causes = collections.Counter(
        (kind, r["cause"]) for kind in records for r in records[kind] if r["outcome"] == "flagged"
    )
    bad = [
        f"* {kind} {r['number']}: {r['outcome']}, {r['cause']}; {r['seconds']:.1f} s, "
        f"{r['bytes'] / 1e6:.0f} MB, apart {r['apart']}. `{r['problem']}`"
        for kind in records
        for r in records[kind]
        if r["outcome"] in ("raised", "broken") or r["off"]
        or r["seconds"] > LONGEST or r["bytes"] > LARGEST
    ]  # fmt: skip
    slow = [
        f"* {kind} {r['number']}: {r['seconds']:.1f} s, {r['outcome']}"
        for kind in records
        for r in sorted(records[kind], key=lambda r: -r["seconds"])[:LISTED]
    ]
    rows = [row(kind, commits[kind], found) for kind, found in records.items()]
    flagged = [[kind, str(n), cause] for (kind, cause), n in causes.most_common()]
    return paragraphs(
        "# Campaign",
        "Written by `python -m benchmarks.campaign`: each kind with the library of the last commit "
        f"that it was measured with, version {replica.__version__}. Random points over all the "
        "ranges that are promised (`random_points.py`, where a kind and a number draw a point), a "
        "part of them solved again "
        "(`second.py`). Seconds are the processor's, of one thread, tables included.",
        table(columns, rows),
        "## Why points were flagged",
        table(["kind", "points", "status"], flagged),
        "## Outside of what is promised",
        "\n".join(bad or ["None."]),
        "## The longest",
        "\n".join(slow),
    )


def main(
    kinds: str = ",".join(KINDS),
    part: Annotated[float, Option(help="Of the points, the first ones.")] = 1.0,
    workers: Annotated[int, Option(help="Processes, of one thread each.")] = 2,
    minutes: Annotated[float, Option(help="Stop after so long.")] = np.inf,
    store: Annotated[Path, Option(help="Of what is known.")] = Path("results/campaign"),
) -> None:
    """Measure what is missing, and write CAMPAIGN.md from all that is there."""
    end, commit = time.monotonic() + 60 * minutes, library_commit()
    folder = store / commit.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=warm) as executor:
        for kind in kinds.split(","):
            numbers = range(round(COUNTS[kind] * part))
            run(kind, numbers, folder / f"{kind}.json", executor, workers, end)
    last = {kind: last_records(store, kind) for kind in KINDS if any(store.glob(f"*/{kind}.json"))}
    commits, records = ({kind: one[i] for kind, one in last.items()} for i in range(2))
    text = page(commits, records)
    CAMPAIGN_PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    typer.run(main)
