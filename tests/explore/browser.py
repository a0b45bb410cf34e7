"""The explorer's page in a Chromium, with what its controls need: waiting, reading, keys."""

import time
from contextlib import contextmanager

from tests import chromium

# Elements of the page and of shadow roots, in which marimo's controls are.
ALL = """(function all(root) {
  return [...root.querySelectorAll('*')].flatMap(
    e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e])
})(document)"""
TEXT = f"""[document.body.innerText,
  ...{ALL}.filter(e => e.shadowRoot).map(e => e.shadowRoot.textContent)].join('\\n')"""


class Page(chromium.Page):
    """A page that answers late."""

    def wait(self, script, seconds=60):
        """Wait until an expression is true; its value."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"{script} stays false: {self.run(TEXT)}"
            time.sleep(0.05)
        return value

    def text(self):
        """All that can be read, in shadow roots too."""
        return self.run(TEXT)

    def press(self, key, code):
        """Press a key of the keyboard."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)


@contextmanager
def open_page(address, width=1400, height=1000):
    """The page at an address, in a Chromium of its own."""
    with chromium.open_page(Page) as page:
        page.size(width, height)
        page.go(address)
        yield page
