"""The explorer in a real Chromium: what it shows is what the library gives."""

import base64
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from replica.explore import DEFAULTS, VIEWS, point
from tests import chromium
from tests.explore.browser import ALL, open_page
from tests.explore.explorer import button, choose, control, explorer, load, one, press, shows

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


def test_every_tab_has_its_figure(opened):
    page = opened()
    load(page)
    for name in reversed(VIEWS):
        press(page, button(name, role="tab"))
        page.wait(f"{ALL}.some(e => e.tagName == 'IMG' && e.alt == 'the {name}' && e.naturalWidth)")


def test_the_figure_can_be_saved(opened, tmp_path):
    page = opened()
    load(page)
    page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    kinds = {"replica.png": b"\x89PNG", "replica.svg": b"<?xml", "replica.csv": b"alpha,"}
    for name, begins in kinds.items():
        press(page, one(f"e.tagName == 'A' && e.download == '{name}'"))
        saved = tmp_path / name
        end = time.monotonic() + 30
        while not saved.exists():
            assert time.monotonic() < end, f"no {saved.name}"
            page.run("0")
            time.sleep(0.05)
        assert saved.read_bytes().startswith(begins)


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


def test_the_last_picture_stays_beside_the_message(opened):
    """Of a pair that cannot be: a loss of the margin on a sine."""
    page = opened()
    page.wait(shows(number()))
    choose(page, "loss", "logistic")
    page.wait(shows("losses of the margin need labels"))
    assert page.run(f"{ALL}.some(e => e.alt == 'the learning curve' && e.naturalWidth > 0)")
    assert page.run(shows(number()))
    assert page.run(shows("the last setting that has an answer"))


def test_labels_have_the_error_of_their_class_first(opened):
    state = {"target": "sign", "alpha": "1,2"}
    page = opened(**state)
    share = point(DEFAULTS | state).classification_error
    page.wait(shows("classification error at"))
    page.wait(shows(f"= 1: {share:.7f}"))


def test_expressions_biases_steps_and_infinity(opened):
    student = "relu(x) - 0.1*relu(-x)"
    page = opened(alpha="1,2", model="srf", bias="-1,1")  # the theory by its former name
    state = {"theory": "srf", "bias": "-1,1"}
    page.wait(shows(number(**state)))
    box = f"{control('TEXT', '(x)')}.querySelector('input')"
    page.run(f"{box}.focus()")
    page.send("Input.insertText", text=student)
    page.run(f"{box}.blur()")
    page.wait(shows(number(**state, student=student)))
    press(page, f"{control('CHECKBOX', '∞')}.querySelector('button')")
    page.wait(shows(number(**state, student=student, alpha0="inf")))
    page.wait("location.search.includes('alpha0=inf')")
    steps = opened(steps="2:1,2:1", student="relu", alpha="1,2")
    steps.wait(shows(number(steps="2:1,2:1", student="relu")))


def test_a_curve_is_kept_below_another(opened):
    page = opened(alpha="1,2")
    load(page)
    press(page, button("keep this curve"))
    page.run("new Promise(f => setTimeout(f, 500))")
    picture = page.run(f"{one('e.alt == `the learning curve`')}.src")
    page.run(f"{control('SLIDER', 'rate')}.querySelector('[role=slider]').focus()")
    page.press("ArrowRight", 39)
    page.wait(shows(number(eta="3.1", alpha="1,2")))
    page.wait(f"{one('e.alt == `the learning curve`')}.src != {picture!r}")
    now = page.run(f"{one('e.alt == `the learning curve`')}.src")
    drawn = base64.b64decode(now.partition(",")[2]).decode()
    assert "kept" in drawn  # the source of a text is in the picture


def test_what_takes_long_is_a_sentence(opened):
    state = {"readout": "gaussian", "theory": "srf"}  # a point takes tenths of a second
    page = opened(**state)
    page.wait(shows("of 40 points of the curve are computed"))
    page.wait(shows(number(**state)))


def test_dots_on_request(opened):
    """They stay, and the command line that was open does, until what they are of changes."""
    page = opened(alpha="1,2")
    load(page)
    press(page, button("command line", role="tab"))
    page.wait(shows("replica curve"))
    press(page, button("simulate networks"))
    page.wait(shows("replica-validate simulate"))
    press(page, button("bounds", role="tab"))
    page.wait(shows("replica bounds"))
    press(page, button("learning curve", role="tab"))
    page.wait(shows("replica-validate simulate"))


def test_an_interrupt_ends_it_quietly():
    with explorer() as (address, process):
        with open_page(address) as page:
            load(page)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "", "")
        assert time.monotonic() - start < 10  # with a page open, which is not waited for


@pytest.mark.skipif(sys.platform != "linux", reason="open files are counted in /proc")
def test_pages_share_what_they_have_open():
    """Fonts: matplotlib has them open once in every thread that draws, of which every page is one;
    pages that were closed had left theirs."""

    def fonts(process):
        files = Path(f"/proc/{process.pid}/fd").iterdir()
        return sum(one.endswith(".ttf") for one in map(os.path.realpath, files))

    counts = []
    with explorer() as (address, process):
        for _ in range(2):
            with open_page(address) as page:
                load(page)
                page.wait(f"{ALL}.some(e => e.alt == 'the learning curve' && e.naturalWidth)")
                counts.append(fonts(process))
    assert 0 < counts[0] == counts[1]


def test_a_port_that_is_taken_is_named(address):
    port = str(urlsplit(address).port)
    program = [sys.executable, "-m", "replica", "explore", "--no-browser", "--port", port]
    done = subprocess.run(program, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 2
    assert done.stderr == f"error: --port must be one that is free, or 0 for any, got {port}\n"


def test_buttons_fit_a_phone(opened):
    """No text leaves its button, and no button the window."""
    page = opened()
    page.size(390, 844)
    load(page)
    page.wait(f"{button('simulate networks')} != null")
    frames = "['BUTTON', 'A'].includes(e.tagName) && e.offsetHeight && e.role != 'tab'"
    boxes = page.run(
        f"{ALL}.filter(e => {frames} && /simulate|keep|PNG|SVG|CSV/.test(e.textContent)).map(e => "
        "{ const b = e.getBoundingClientRect(); const r = document.createRange(); "
        "r.selectNodeContents(e); const t = r.getBoundingClientRect(); "
        "return [b.left, b.right, b.top - t.top, t.bottom - b.bottom] })"
    )
    assert len(boxes) >= 5
    for left, right, above, below in boxes:
        assert 0 <= left < right <= 390
        assert max(above, below) < 1
