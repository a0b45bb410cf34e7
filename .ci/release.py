"""Build the sdist and the wheel, check both, and run the wheel by itself on every Python there is.

    python3 .ci/release.py                all versions that setup.cfg classifies
    python3 .ci/release.py 3.11 3.14      these versions
    python3 .ci/release.py --dist FOLDER  files into FOLDER, not into dist

`twine check` and `check-wheel-contents` check the files. In an empty environment of each version,
outside the checkout, the commands, the README's example and the explorer are run. A version that is
not found, on the path or of pyenv or uv, is said to be left out.
"""

import argparse
import configparser
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = "Scripts" if os.name == "nt" else "bin"
OUTSIDE = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
LEFT_OUT = ".*cache", ".git", ".venv*", "build", "dist", "*.egg-info"
IN_SDIST = {"CITATION.cff", "CHANGELOG.md", "LICENSE", "docs/theory.md", "tests/conftest.py"}
INSTALLED = ".pyenv/versions/{}.*/bin/python", ".local/share/uv/python/cpython-{}.*/bin/python"


def run(*command: str | Path) -> str:
    """Standard output of a command that knows nothing of the checkout; a failure ends all."""
    folder = tempfile.gettempdir()
    done = subprocess.run(command, cwd=folder, env=OUTSIDE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(dist: Path, folder: Path) -> Path:
    """Wheel of the sdist of this checkout, with both files in ``dist``, checked."""
    venv.create(folder / "tools", with_pip=True)
    python = folder / "tools" / BIN / "python"
    run(python, "-m", "pip", "install", "--quiet", "build", "twine", "check-wheel-contents")
    shutil.copytree(ROOT, folder / "checkout", ignore=shutil.ignore_patterns(*LEFT_OUT))
    run(python, "-m", "build", "--outdir", folder / "dist", folder / "checkout")
    (wheel,), (sdist,) = (list((folder / "dist").glob(name)) for name in ("*.whl", "*.tar.gz"))
    with tarfile.open(sdist) as packed:
        missing = IN_SDIST - {name.partition("/")[2] for name in packed.getnames()}
    if missing:
        sys.exit(f"the sdist lacks {', '.join(sorted(missing))}")
    print(run(python, "-m", "twine", "--no-color", "check", "--strict", wheel, sdist), end="")
    config = ROOT / "pyproject.toml"
    print(run(python.with_name("check-wheel-contents"), "--config", config, wheel), end="")
    shutil.copytree(folder / "dist", dist, dirs_exist_ok=True)
    return wheel


def interpreter(version: str) -> str | None:
    """The first Python of that version that starts here; None where none does."""
    places = [sys.executable, shutil.which(f"python{version}")]
    for pattern in INSTALLED:
        places += map(str, sorted(Path.home().glob(pattern.format(version))))
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for place in filter(None, places):
        done = subprocess.run([place, "-c", code], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return place
    return None


def use(wheel: Path, python: str, folder: Path) -> None:
    """Install the wheel into an empty environment in ``folder``, and use what it offers."""
    run(python, "-m", "venv", folder)
    scripts = folder / BIN
    run(scripts / "python", "-m", "pip", "install", "--quiet", f"{wheel}[explore]")
    version = wheel.name.split("-")[1]
    for script in ("replica", "replica-validate"):
        if run(scripts / script, "--version").strip() != version:
            sys.exit(f"{script} --version is not {version}")
    step = ["--student", "tanh", "--target", "sin", "--alpha0", "20", "--eta", "3"]
    run(scripts / "replica", "curve", *step, "--alpha", "0.2:3:50", "--lam", "1e-2,1e-1")
    network = ["--alpha", "1", "--lam", "0.1", "--dimension", "100", "--seeds", "2"]
    run(scripts / "replica-validate", "simulate", *step, *network)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    told = [line.split("# ")[1] for line in code.splitlines() if "print(" in line]
    printed = run(scripts / "python", "-c", code).splitlines()
    if printed != told:
        sys.exit(f"the README's example prints {printed}, not {told}")
    explore(scripts / "replica")


def explore(command: Path) -> None:
    """Fetch the explorer's page, as a browser does: the token is exchanged for a cookie."""
    serve = [command, "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(serve, cwd=command.parent, env=OUTSIDE, stderr=-1, text=True) as process:
        try:
            assert process.stderr is not None
            address = process.stderr.readline().split()[4]
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with browser.open(address, timeout=60) as answer:
                if "replica: explorer" not in answer.read().decode():
                    sys.exit("the explorer serves another page")
        finally:
            process.terminate()


def main() -> None:
    """Every version that is asked for; without one that is here, there is no release."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg", "utf-8")
    classified = re.findall(r"Python :: (3\.\d+)", settings["metadata"]["classifiers"])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="*", default=classified)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(options.dist.resolve(), folder)
        found = {version: interpreter(version) for version in options.versions}
        for version, python in found.items():
            if python is None:
                print(f"Python {version}: left out, as it is not found here")
                continue
            use(wheel, python, folder / version)
            print(f"Python {version}: installed and run from {wheel.name}", flush=True)
    if not any(found.values()):
        sys.exit("the wheel was run on no Python")


if __name__ == "__main__":
    main()
