"""A page of a real Chromium, driven over its DevTools protocol."""

import base64
import json
import re
import shutil
import subprocess
import time
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--remote-debugging-port=0", "--remote-allow-origins=*",
)  # fmt: skip


def chromium():
    """Where a Chromium is, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page: messages are sent, and events gathered while their answers are waited for."""

    def __init__(self, socket):
        self.socket, self.sent, self.events = socket, 0, []

    def send(self, method, **parameters):
        """Send a message of the protocol; its answer."""
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=60))
            if message.get("id") == self.sent:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

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

    def complaints(self):
        """What the console was told as an error, and what was thrown."""
        self.run("0")  # for events that are on their way
        kinds = {
            "Runtime.exceptionThrown": lambda p: True,
            "Runtime.consoleAPICalled": lambda p: p["type"] in ("error", "assert"),
            "Log.entryAdded": lambda p: p["entry"]["level"] == "error",
        }
        return [e for e in self.events if kinds.get(e["method"], lambda p: False)(e["params"])]

    def picture(self, path):
        """Write the page as an image."""
        shot = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


# Elements of the page and of shadow roots, in which marimo's controls are.
ALL = """(function all(root) {
  return [...root.querySelectorAll('*')].flatMap(
    e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e])
})(document)"""
TEXT = f"""[document.body.innerText,
  ...{ALL}.filter(e => e.shadowRoot).map(e => e.shadowRoot.textContent)].join('\\n')"""


@contextmanager
def open_page(address, folder, width=1400, height=1000):
    """A page of a Chromium of its own, at an address."""
    from websockets.sync.client import connect

    program = [chromium(), *OPTIONS, f"--user-data-dir={folder}", f"--window-size={width},{height}"]
    with subprocess.Popen([*program, "about:blank"], stderr=subprocess.PIPE, text=True) as process:
        try:
            found = (re.search(r"ws://\S+?:(\d+)/", line) for line in process.stderr)
            port = next(filter(None, found))[1]
            with connect(_socket_of_page(port), max_size=None) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Log"):
                    page.send(f"{domain}.enable")
                page.send("Page.navigate", url=address)
                yield page
        finally:
            process.terminate()


def _socket_of_page(port):
    """The address at which the first page is driven."""
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
        pages = json.load(answer)
    return next(one["webSocketDebuggerUrl"] for one in pages if one["type"] == "page")
