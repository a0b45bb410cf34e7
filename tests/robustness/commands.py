"""A command line run as a stranger would run it: in a process of its own, in an empty folder, with
a limit on memory and time.  What came of it, and whether that is how a command may end."""

import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MEMORY = 4 * 2**30  # bytes of address space that a command may take
SECONDS = 60.0
LINES, CHARACTERS = 4, 1000  # of standard error, at most: a person reads them
STATUSES = (0, 1, 2)


class Outcome(NamedTuple):
    """How a command ended; ``status`` is that of a shell, 128 + the signal that killed it."""

    status: int
    seconds: float
    out: str
    err: str

    @property
    def fault(self) -> str:
        """What a command may not do, if it did; empty where it ended as it should."""
        if self.seconds >= SECONDS:
            return "hang"
        if "Traceback" in self.err:
            return "traceback"
        if self.status not in STATUSES:
            return f"status {self.status}"
        if len(self.err.splitlines()) > LINES or len(self.err) > CHARACTERS:
            return "long message"
        if self.status == 2 and "error: " not in self.err:
            return "no sentence"
        return ""


def run_command(
    arguments: Sequence[str], files: dict[str, bytes] | None = None, memory: int = MEMORY
) -> Outcome:
    """Run ``replica`` or ``replica-validate``, the first of ``arguments``, with the rest of them.

    In a copy of this process, which has its imports behind it, and in a folder that holds
    ``files`` and nothing else.
    """
    from replica.cli import main
    from validation.cli import main as validation

    program = {"replica": main, "replica-validate": validation}[arguments[0]]
    folder = Path(tempfile.mkdtemp(prefix="trial-"))
    output = Path(tempfile.mkdtemp(prefix="trial-"))
    try:
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            status = 70
            try:
                _become(folder, output, memory)
                status = _status(program, arguments)
            finally:  # whatever happens, the copy does not go on with this process's work
                os._exit(status)
        status = _wait(child, start + SECONDS)
        out, err = (
            (output / name).read_bytes()[:200_000].decode(errors="replace")
            for name in ("out", "err")
        )
        return Outcome(status, time.monotonic() - start, out, err)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(output, ignore_errors=True)


def _become(folder: Path, output: Path, memory: int) -> None:
    """Make this process one that a shell would have started in ``folder``."""
    os.setsid()
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(output / name, os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    # pytest's debugger, which takes the place of Python's, would wait for somebody
    sys.breakpointhook, os.environ["PYTHONBREAKPOINT"] = sys.__breakpointhook__, "0"
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = memory + pages * resource.getpagesize()  # on top of what the copy was born with
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _status(program, arguments: Sequence[str]) -> int:
    """The exit status of the interpreter that runs the program."""
    sys.argv = list(arguments)
    try:
        program()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        traceback.print_exc()
        status = 70
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _wait(child: int, deadline: float) -> int:
    """The child's exit status; it and what it started are killed at the deadline."""
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 128 + signal.SIGKILL
