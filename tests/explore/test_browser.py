"""The explorer in a real Chromium: what it shows is what the library gives."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from urllib.parse import urlencode, urlsplit

import pytest

from replica.explore import DEFAULTS, point
from tests import chromium
from tests.explore.browser import ALL, open_page
from tests.explore.explorer import control, explorer, load, one, shows

pytestmark = [
    pytest.mark.slow,  # a browser, and a server that imports everything: ten seconds and more
    pytest.mark.skipif(chromium.find() is None, reason=chromium.MISSING),
    pytest.mark.skipif(
        importlib.util.find_spec("marimo") is None, reason="no marimo here: extra [explore]"
    ),
]


@pytest.fixture(scope="module")
def address():
    with explorer() as (found, _):
        yield found


@pytest.fixture
def opened(address):
    """Opens a page of a state; at the end nothing may have gone wrong in it."""
    pages = []

    def visit(**state):
        context = open_page(f"{address}&{urlencode(state)}")
        page = context.__enter__()
        pages.append((context, page))
        return page

    yield visit
    for context, page in pages:
        page.run("0")  # for errors that are on their way
        context.__exit__(None, None, None)
        assert page.errors == []


def number(**state):
    """The test error as the page shows it."""
    return f"{point(DEFAULTS | state).test_error:.7f}"


def test_a_slider_changes_the_number_to_that_of_solve(opened):
    page = opened()
    page.wait(shows(number()))
    page.run(f"{control('SLIDER', 'rate')}.querySelector('[role=slider]').focus()")
    for eta in ("3.1", "3.2"):
        page.press("ArrowRight", 39)
        page.wait(shows(number(eta=eta)))
    page.wait("location.search == '?eta=3.2'")


def test_the_copied_code_gives_the_number(opened, tmp_path):
    state = {"eta": "2", "noise": "0.1", "theory": "srf"}
    page = opened(**state)
    page.wait(shows(number(**state)))
    page.wait(one("e.tagName == 'PRE' && e.innerText.includes('import')") + " != null")
    code = page.run(one("e.tagName == 'PRE'") + ".innerText")
    run = {"capture_output": True, "text": True, "check": True, "cwd": tmp_path}
    done = subprocess.run([sys.executable, "-c", code], **run)
    assert [one.name for one in tmp_path.iterdir()] == ["curve.png"]
    assert f"{float(done.stdout.splitlines()[0]):.7f}" == number(**state)


def test_the_address_holds_the_state(opened):
    state = {"alpha0": "inf", "eta": "12", "target": "he1+he3/6", "at": "2"}
    page = opened(**state, view="spectrum")
    page.wait(shows(number(**state)))
    page.wait(f"{ALL}.some(e => e.alt == 'the spectrum')")  # drawn after the numbers


def test_a_bad_value_is_a_sentence(opened):
    trap = "<img src=x onerror='document.title=`caught`'>"
    page = opened(beta="-1", readout=trap)
    page.wait(shows("readout must be"))
    page.run("new Promise(f => setTimeout(f, 300))")
    assert page.run("document.title") != "caught"
    assert page.run(f"{ALL}.every(e => e.getAttribute('src') != 'x')")
    assert "Traceback" not in page.text()


def test_an_interrupt_ends_it_quietly():
    with explorer() as (address, process):
        with open_page(address) as page:
            load(page)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "", "")
        assert time.monotonic() - start < 10  # with a page open, which is not waited for


def test_a_port_that_is_taken_is_named(address):
    port = str(urlsplit(address).port)
    program = [sys.executable, "-m", "replica", "explore", "--no-browser", "--port", port]
    done = subprocess.run(program, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 2
    assert done.stderr == f"error: --port must be one that is free, or 0 for any, got {port}\n"
