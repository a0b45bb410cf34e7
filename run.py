"""Commands for a fresh clone, with nothing but Python 3.11 or newer:

    python3 run.py demo     compute the published learning curve, check it by simulation
    python3 run.py test     style, types and the ordinary tests: some four minutes on two cores
    python3 run.py rest     what test leaves out: slow tests, doctests and the documentation
    python3 run.py all      test, then rest
    python3 run.py style    the first part of test alone: style and types
    python3 run.py docs     the documentation alone, into docs/_build/html
    python3 run.py minimums the ordinary tests on the oldest versions that setup.cfg allows

Everything is installed into .venv beside this file, the oldest versions into .venv-minimums; demo
writes into results/.
"""

import configparser
import os
import shlex
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
EVERYTHING = ".[test,docs]"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PROBLEM = ["--student", "tanh", "--target", "sin", "--alpha0", "20", "--eta", "3", "--lam", "0.1"]


def call(*command: str, **environment: str) -> None:
    """Run one step, shown as it would be typed; stop at the first that fails."""
    print("$", " ".join(command), flush=True)
    program, *arguments = command
    done = subprocess.run([BIN / program, *arguments], cwd=ROOT, env=os.environ | environment)
    if done.returncode:
        sys.exit(done.returncode)


def install(requirement: str, *pinned: str) -> None:
    """Make the environment, and install the project with what ``requirement`` adds, of ``pinned``
    versions; once, until what it asks for changes."""
    files = [(ROOT / name).read_text() for name in ("setup.cfg", "pyproject.toml")]
    wanted, everything = ("\n".join([one, *files]) for one in (requirement, EVERYTHING))
    stamp = VENV / "installed.txt"
    if stamp.exists() and stamp.read_text() in (wanted, everything):
        return
    if not (BIN / "python").exists() and not (BIN / "python.exe").exists():
        print(f"making {VENV}", flush=True)
        try:
            venv.create(VENV, with_pip=True, clear=True)
        except subprocess.CalledProcessError:
            sys.exit("python3 cannot make an environment: install its venv module (python3-venv)")
    # Python compiles what it imports: pip would compile all there is, for some twenty seconds
    call("python", "-m", "pip", "install", "--no-compile", "--editable", requirement, *pinned)
    stamp.write_text(wanted)


def pytest(*arguments: str) -> None:
    """Tests on up to four cores; one thread for each, as they share what there is."""
    workers = ["-n", str(min(os.cpu_count() or 1, 4))]
    call("pytest", *workers, *arguments, OMP_NUM_THREADS="1")


def demo() -> None:
    """The published setting: theory by itself, then beside a Monte Carlo of the network."""
    print(
        "The first time this installs the library into .venv: some 150 MB, one to four minutes.\n"
        "The theory then takes seconds, and twenty networks beside it one to three minutes.",
        flush=True,
    )
    install(".")
    (ROOT / "results").mkdir(exist_ok=True)
    started = time.perf_counter()
    call("replica", "curve", *PROBLEM, "--alpha", "0.6:3:5")
    picture, table = "results/tanh-sin.png", "results/tanh-sin.csv"
    simulation = ["--dimension", "700", "--seeds", "20", "--rng", "1"]
    grid = ["--alpha", "0.6:3:5", "--plot", picture, "--out", table]
    call("replica-validate", "compare", *PROBLEM, *grid, *simulation)
    print(f"done in {time.perf_counter() - started:.0f} s: {ROOT / picture} and {ROOT / table}")
    print(from_now_on(BIN))


def from_now_on(folder: Path) -> str:
    """How to call the commands of an environment, from the ``folder`` that has them.

    >>> print(from_now_on(Path("/home/me/replica-srf/.venv/bin")))
    from now on: /home/me/replica-srf/.venv/bin/replica --help
    or, once in a shell, and then only replica: . /home/me/replica-srf/.venv/bin/activate
    """
    command, activate = (shlex.quote(str(folder / name)) for name in ("replica", "activate"))
    sourced = activate if os.name == "nt" else f". {activate}"
    return f"from now on: {command} --help\nor, once in a shell, and then only replica: {sourced}"


def style() -> None:
    """Style and types."""
    install(".[test]")
    call("ruff", "check", ".")
    call("ruff", "format", "--check", ".")
    call("mypy")


def test() -> None:
    """Style, types and the ordinary tests."""
    style()
    pytest()
    print("style, types and ordinary tests passed")


def minimums() -> None:
    """The ordinary tests on the oldest versions that setup.cfg allows."""
    global VENV, BIN
    VENV = ROOT / ".venv-minimums"
    BIN = VENV / BIN.name
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    needed = settings["options"]["install_requires"].split()
    install(".[test]", *(one.replace(">=", "==") for one in needed if ">=" in one))
    # old versions warn of the deprecations of newer ones that they use
    pytest("-W", "ignore::DeprecationWarning")
    print("ordinary tests passed on the oldest versions")


def docs() -> None:
    """The documentation, with the scripts of its gallery run."""
    install(EVERYTHING)
    call("sphinx-build", "-W", "-q", "-b", "html", "docs", "docs/_build/html")


def rest() -> None:
    """What ``test`` leaves out: slow tests, doctests and the documentation."""
    docs()  # some of the slow tests look at its pages
    pytest("-m", "slow")
    pytest("--doctest-modules", "solvers", "replica", "validation")
    print("slow tests, doctests and documentation passed")


def everything() -> None:
    """All there is."""
    test()
    rest()


TASKS = {
    "demo": demo,
    "test": test,
    "rest": rest,
    "all": everything,
    "style": style,
    "docs": docs,
    "minimums": minimums,
}

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  (run by whatever python3 there is)
        sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    if len(sys.argv) != 2 or sys.argv[1] not in TASKS:
        sys.exit(__doc__)
    TASKS[sys.argv[1]]()
