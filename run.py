"""Two commands for a fresh clone, with nothing but Python 3.11 or newer:

    python3 run.py demo    install, compute the published learning curve, check it by simulation
    python3 run.py test    install, run every check and the whole test suite

Everything is installed into .venv beside this file; demo writes into results/.
"""

import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PROBLEM = ["--student", "tanh", "--target", "sin", "--alpha0", "20", "--eta", "3", "--lam", "0.1"]


def call(*command: str, **environment: str) -> None:
    """Run one step, shown as it would be typed; stop at the first that fails."""
    print("$", " ".join(command), flush=True)
    program, *arguments = command
    done = subprocess.run([BIN / program, *arguments], cwd=ROOT, env=os.environ | environment)
    if done.returncode:
        sys.exit(done.returncode)


def install(requirement: str) -> None:
    """Make the environment, once, and install the project with what ``requirement`` adds."""
    if not (BIN / "python").exists() and not (BIN / "python.exe").exists():
        print(f"making {VENV}", flush=True)
        try:
            venv.create(VENV, with_pip=True, clear=True)
        except subprocess.CalledProcessError:
            sys.exit("python3 cannot make an environment: install its venv module (python3-venv)")
    call("python", "-m", "pip", "install", "--quiet", "--editable", requirement)


def demo() -> None:
    """The published setting: theory by itself, then beside a Monte Carlo of the network."""
    install(".")
    (ROOT / "results").mkdir(exist_ok=True)
    started = time.perf_counter()
    call("replica", "curve", *PROBLEM, "--alpha", "0.2:3:5")
    picture, table = "results/tanh-sin.png", "results/tanh-sin.csv"
    simulation = ["--dimension", "700", "--seeds", "6", "--rng", "1"]
    grid = ["--alpha", "0.2:3:5", "--plot", picture, "--out", table]
    call("replica-validate", "compare", *PROBLEM, *grid, *simulation)
    print(f"done in {time.perf_counter() - started:.0f} s: {ROOT / picture} and {ROOT / table}")


def test() -> None:
    """Style, types, every test (the slow ones too) and the documentation."""
    install(".[test,docs]")
    call("ruff", "check", ".")
    call("ruff", "format", "--check", ".")
    call("mypy")
    workers = ["-n", str(min(os.cpu_count() or 1, 4))]
    call("pytest", "-m", "slow or not slow", *workers, OMP_NUM_THREADS="1")
    call("sphinx-build", "-W", "-q", "-b", "html", "docs", "docs/_build/html")
    print("all checks passed")


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  (run by whatever python3 there is)
        sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    tasks = {"demo": demo, "test": test}
    if len(sys.argv) != 2 or sys.argv[1] not in tasks:
        sys.exit(__doc__)
    tasks[sys.argv[1]]()
