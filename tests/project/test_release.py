"""What a release consists of: one version everywhere, files that can be read, a wheel that works
without the checkout."""

import configparser
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import venv
from pathlib import Path

import pytest
import yaml

import replica
from tests.places import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
BIN = "Scripts" if os.name == "nt" else "bin"
LEFT_OUT = ".*cache", ".git", ".venv", "build", "*.egg-info"
OUTSIDE = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def settings():
    """The sections of setup.cfg."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg", "utf-8")
    return parser


def document(name):
    """What a YAML or JSON file holds, which JSON is too."""
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_versions_agree():
    citation, meta = document("CITATION.cff"), document("codemeta.json")
    recipe = document("conda-recipe/meta.yaml")["package"]["version"]
    written = {settings()["metadata"]["version"], citation["version"], meta["version"], recipe}
    assert written == {replica.__version__}
    assert meta["dateModified"] == str(citation["date-released"])


def test_the_papers_are_the_same_everywhere():
    page = (ROOT / "docs/theory.md").read_text("utf-8")
    papers = re.findall(r"\(https://arxiv.org/abs/([\d.]+)\)", page[: page.index("## ")])
    cited, named = document("CITATION.cff")["references"], document("codemeta.json")
    for listed in (cited, named["referencePublication"]):
        assert [one["url"].rpartition("/")[2] for one in listed] == papers
    assert len(papers) == 3


def test_the_recipe_asks_for_what_the_package_asks_for():
    """By conda's names."""
    needed = {*settings()["options"]["install_requires"].split(), f"python{_oldest()}"}
    recipe = document("conda-recipe/meta.yaml")
    asked = {one.replace(" ", "") for one in recipe["requirements"]["run"]}
    assert {one.replace("matplotlib-base", "matplotlib") for one in asked} == needed
    extras = settings()["options.extras_require"]["explore"].split()
    assert [one.replace(" ", "") for one in recipe["requirements"]["run_constrained"]] == extras
    scripts = settings()["options.entry_points"]["console_scripts"].split("\n")[1:]
    assert recipe["build"]["entry_points"] == scripts


def _oldest():
    """The oldest Python, as it is asked for."""
    return settings()["options"]["python_requires"]


def test_every_python_is_classified_and_tested_by_the_workflow():
    named = versions()
    assert f">={named[0]}" == _oldest()
    matrix = document(".github/workflows/tests.yml")["jobs"]["ordinary"]["strategy"]["matrix"]
    tested = {*matrix["python"], *(one["python"] for one in matrix["include"])}
    assert tested == set(named)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_can_be_read(path):
    """Each job runs somewhere, within a time if it runs code of its own."""
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    for job in jobs.values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        # a tag may be moved, a commit may not
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.search(r"@[0-9a-f]{40}$", one) for one in used)
        assert "timeout-minutes" in job or not any("run" in step for step in job["steps"])


def test_the_readme_of_an_index_page_has_no_relative_address(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("addresses", ROOT / ".github/addresses.py")
    addresses = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(addresses)
    for name in ("README.md", "setup.cfg"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    addresses.main("https://example.org/one/two", "v1")
    readme = Path("README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert links
    assert all(link.startswith("https://") for link in links)
    assert "](https://example.org/one/two/raw/v1/docs/figures/tanh-sin.png)" in readme
    assert "](https://example.org/one/two/blob/v1/CONTRIBUTING.md)" in readme
    assert "Source = https://example.org/one/two\n" in Path("setup.cfg").read_text("utf-8")


def versions():
    """The Pythons that are classified."""
    return re.findall(r"Python :: (3\.\d+)", settings()["metadata"]["classifiers"])


def interpreter(version):
    """The first Python of that version that starts here; the test is skipped where none does."""
    places = [sys.executable, shutil.which(f"python{version}")]
    places += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for place in filter(None, places):
        code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([place, "-c", code], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return place
    pytest.skip(f"no Python {version} here")


def try_pip(*arguments):
    """Run pip, and skip the test where no registry answers."""
    done = subprocess.run(arguments, capture_output=True, text=True, env=OUTSIDE)
    if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip(f"no registry has what is needed: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel of the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / BIN / "python"
    try_pip(python, "-m", "pip", "install", "--quiet", "build")
    copy = folder / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    subprocess.run([python, "-m", "build", "-o", folder, copy], check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    needed = {"CITATION.cff", "CHANGELOG.md", "LICENSE", "docs/theory.md", "tests/conftest.py"}
    assert needed <= names
    return next(folder.glob("*.whl"))


@pytest.mark.slow  # makes an environment and installs everything: a minute or more
@pytest.mark.parametrize("version", [versions()[0], versions()[-1]])  # the others lie between
def test_the_wheel_works_in_an_empty_environment(version, wheel, tmp_path):
    subprocess.run([interpreter(version), "-m", "venv", tmp_path / "venv"], check=True)
    folder = tmp_path / "venv" / BIN
    try_pip(folder / "python", "-m", "pip", "install", "--quiet", f"{wheel}[explore]")
    run = {"cwd": tmp_path, "env": OUTSIDE, "capture_output": True, "text": True, "check": True}
    for script in ("replica", "replica-validate"):
        done = subprocess.run([folder / script, "--version"], **run)
        assert done.stdout.strip() == replica.__version__

    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    shown = subprocess.run([folder / "python", "-c", code], **run).stdout.splitlines()
    assert shown == [line.split("# ")[1] for line in code.splitlines() if "print(" in line]

    served = [folder / "replica", "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(served, cwd=tmp_path, env=OUTSIDE, stderr=-1, text=True) as process:
        try:
            address = process.stderr.readline().split()[4]
            # as a browser does: the token is exchanged for a cookie
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with browser.open(address, timeout=60) as answer:
                assert answer.status == 200
                assert "replica: explorer" in answer.read().decode()
        finally:
            process.terminate()
