"""What a release consists of: one version everywhere, files that can be read, a wheel that works
without the checkout."""

import configparser
import re
import subprocess
import sys

import pytest
import yaml

import replica
from tests.places import ROOT


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


def versions():
    """The Pythons that are classified."""
    return re.findall(r"Python :: (3\.\d+)", settings()["metadata"]["classifiers"])


@pytest.mark.slow  # makes environments and installs everything: minutes
def test_the_wheel_works_in_empty_environments(tmp_path):
    """Of the oldest and the newest Python that are classified, where they are here."""
    asked = versions()[0], versions()[-1]  # the others lie between
    script = [sys.executable, ROOT / ".ci/release.py", *asked, "--dist", tmp_path]
    done = subprocess.run(script, capture_output=True, text=True)
    if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip(f"no registry has what is needed: {done.stderr.strip().splitlines()[-1]}")
    if "run on no Python" in done.stderr:
        pytest.skip(f"neither Python {asked[0]} nor {asked[1]} is here")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    ran, missing = f"installed and run from {wheel.name}", "left out, as it is not found here"
    for version in asked:
        line = rf"^Python {version}: ({ran}|{missing})$"
        assert re.search(line, done.stdout, re.MULTILINE), done.stdout
