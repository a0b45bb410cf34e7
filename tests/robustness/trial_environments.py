"""The trial of environments: ``python -m tests.robustness.trial_environments`` runs commands
with variables, streams and folders as people and machines have them, says what failed, and counts.

Each runs in a process of its own; some minutes."""

import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from tests.places import ROOT

from .commands import CHARACTERS, LINES, SECONDS

STEP = "--student tanh --target sin --alpha0 2 --eta 1"
POINT = f"{STEP} --alpha 1 --lam 0.1"
COMMANDS = {
    "curve": f"replica curve {POINT} --json",
    "help": "replica --help",
    "plot": f"replica curve {STEP} --alpha 0.5,1 --lam 0.1 --plot p.pdf --out p.json",
    "simulate": f"replica-validate simulate {POINT} --dimension 40 --seeds 2 --rng 0",
}
VARIABLES = {
    "LANG": ["C", "de_DE.UTF-8", "tr_TR.UTF-8", "nonsense", ""],
    "LC_ALL": ["C", "POSIX", "ja_JP.eucJP", "xx_XX"],
    "PYTHONIOENCODING": ["ascii", "latin-1", "utf-16"],
    "PYTHONUTF8": ["0", "1"],
    "TERM": ["dumb", "", "xterm-256color", "nonsense"],
    "COLUMNS": ["0", "1", "-5", "x", ""],
    "LINES": ["0", "x"],
    "NO_COLOR": ["", "1"],
    "FORCE_COLOR": ["", "1", "x"],
    "TZ": ["Asia/Kolkata", "nonsense"],
    "MPLBACKEND": ["agg", "tkagg", "nonsense", ""],
    "MPLCONFIGDIR": ["/dev/null", "/proc/nothing/x", "/proc"],
    "DISPLAY": [":99"],
    "HOME": ["/proc/nothing", "/dev/null", "/"],
    "TMPDIR": ["/proc/nothing", "/dev/null"],
    "XDG_CACHE_HOME": ["/dev/null", "relative"],
    "XDG_CONFIG_HOME": ["/dev/null"],
    "NUMBA_CACHE_DIR": ["/dev/null/x", "/proc", "/proc/nothing/y"],
    "NUMBA_NUM_THREADS": ["0", "1", "-1", "99999", "x"],
    "NUMBA_DISABLE_JIT": ["1", "0", "x"],
    "NUMBA_BOUNDSCHECK": ["1"],
    "NUMBA_OPT": ["0", "3", "x"],
    "OMP_NUM_THREADS": ["0", "1", "2", "-1", "x", "99999"],
    "OPENBLAS_NUM_THREADS": ["0", "64", "x"],
    "MKL_NUM_THREADS": ["x"],
    "PYTHONHASHSEED": ["0", "random"],
    "PYTHONOPTIMIZE": ["1", "2"],
    "PYTHONDONTWRITEBYTECODE": ["1"],
    "PYTHONDEVMODE": ["1"],
    "PYTHONWARNINGS": ["error::UserWarning", "default", "nonsense"],
    "PYTHONUNBUFFERED": ["1"],
    "PYTHONNOUSERSITE": ["1"],
    "SOURCE_DATE_EPOCH": ["0", "1700000000", "nonsense", "-1", "99999999999999999999"],
    "_TYPER_STANDARD_TRACEBACK": ["1"],
    "TYPER_USE_RICH": ["0", "1"],
    "PAGER": ["/proc/nothing"],
}
STREAMS = {
    "no input": "{} <&-",
    "no output": "{} >&-",
    "no errors": "{} 2>&-",
    "nothing": "{} <&- >&- 2>&-",
    "full disk": "{} >/dev/full",
    "full errors": "{} 2>/dev/full",
    "closed pipe": "{} | true",
    "head": "{} | head -c 10",
    "input": "yes | head -c 100000 | {}",
    "background": "{} & wait $!",
    "nice": "nice -n 19 {}",
    "no signals": "trap '' INT TERM HUP PIPE; {}",
    "few files": "ulimit -n 64; {}",
    "small stack": "ulimit -s 512; {}",
    "no core, less time": "ulimit -c 0; ulimit -t 50; {}",
}
FOLDERS = "usual", "read-only", "deleted", "space and ü", "long", "link", "/", "/proc", "many files"


def tries():
    """(theme, name, command line, variables, folder) of every try."""
    for name, command in COMMANDS.items():
        for variable, values in VARIABLES.items():
            if name in ("plot", "simulate") and variable.startswith(("PYTHON", "TERM", "LINES")):
                continue
            for value in values if name == "curve" else values[-2:]:
                yield "variables", f"{variable}={value} {name}", command, {variable: value}, "usual"
        yield "variables", f"none {name}", command, None, "usual"
    for (stream, form), name in product(STREAMS.items(), COMMANDS):
        yield "streams", f"{stream} {name}", form.format(COMMANDS[name]), {}, "usual"
    for folder, name in product(FOLDERS, COMMANDS):
        yield "folders", f"{folder} {name}", COMMANDS[name], {}, folder


def made(folder, base):
    """A working folder of that kind, in ``base``."""
    place = base / "work"
    match folder:
        case "space and ü":
            place = base / "a folder ü 'x' \"y\" $HOME"
        case "long":
            place.mkdir()
            for _ in range(1900):  # one by one: functions that make parents call themselves
                place /= "x"
                place.mkdir()
            return place
        case "link":
            (base / "there").mkdir()
            place.symlink_to(base / "there")
            return place
        case "/" | "/proc":
            return Path(folder)
    place.mkdir(parents=True)
    if folder == "many files":
        for i in range(3000):
            (place / f"{i}.json").touch()
    if folder == "read-only":
        place.chmod(0o555)
    return place


def fault(line, variables, folder):
    """What went wrong with one try; empty where it ended as it should."""
    base = Path(tempfile.mkdtemp(prefix="trial-"))
    try:
        place = made(folder, base)
        before = 'rmdir "$PWD"; ' if folder == "deleted" else ""
        own = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
        environment = own if variables is None else os.environ | own | variables
        start = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", before + line],
            cwd=place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return "hang"
        err = err.decode(errors="replace")
        said = [x for x in err.splitlines() if not x.startswith(("OMP: ", "bash: ", "perl: "))]
        if "Traceback" in err:
            return f"traceback ({err[-300:]!r})"
        if process.returncode not in (0, 1, 2):
            return f"status {process.returncode} ({err[-300:]!r})"
        if len(said) > LINES or len(err) > CHARACTERS:
            return f"long message ({err[:300]!r})"
        if process.returncode and not err and "2>" not in line:
            return f"status {process.returncode} without a word"
        return "" if time.monotonic() - start < SECONDS else "too long"
    finally:
        subprocess.run(["rm", "-rf", base], check=False)  # shutil calls itself for each level


def main(themes):
    """Run the tries of the themes, or of all; how many failed."""
    tried = failed = 0
    for theme, name, *one in tries():
        if not themes or theme in themes:
            tried += 1
            if wrong := fault(*one):
                failed += 1
                print(f"{theme}: {name}: {wrong}", flush=True)
    print(f"{tried} tried, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
