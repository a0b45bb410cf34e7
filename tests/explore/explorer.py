"""The explorer as a process, and what is in its page: JavaScript that finds it."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

from tests.explore.browser import ALL


@contextmanager
def explorer():
    """Its address, and the process of ``replica explore``, which is ended if it still runs."""
    program = [sys.executable, "-m", "replica", "explore", "--no-browser", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(program, env=one_thread, **pipes) as process:
        try:
            said = process.stderr.readline()
            assert "http://127.0.0.1:" in said, said
            yield said.split()[4], process
        finally:
            process.kill()


def one(condition):
    """The element e of which the condition holds."""
    return f"{ALL}.find(e => {condition})"


def shows(text):
    """Whether a text is read somewhere on the page."""
    return f"{ALL}.some(e => e.children.length < 9 && e.innerText?.includes({json.dumps(text)}))"


def button(text, role="button"):
    """The button, or tab, with that text."""
    found = f"e.tagName == 'BUTTON' && e.textContent.trim() == {json.dumps(text)}"
    return one(found if role == "button" else f"{found} && e.getAttribute('role') == 'tab'")


def control(kind, label):
    """The shadow root of the control with that label."""
    return one(f"e.tagName == 'MARIMO-{kind}' && e.shadowRoot.textContent.includes('{label}')") + (
        ".shadowRoot"
    )


def load(page):
    """Wait until there is a number."""
    page.wait(shows("test error at"))


def press(page, element):
    """Click in the middle of an element, as a hand does."""
    x, y = page.wait(
        f"(e => {{ e?.scrollIntoView({{block: 'nearest'}}); const b = e?.getBoundingClientRect(); "
        f"return b && [b.x + b.width / 2, b.y + b.height / 2] }})({element})"
    )
    for kind in ("mousePressed", "mouseReleased"):
        page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
