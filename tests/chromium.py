"""A page in a headless Chromium, driven over its debugging protocol.

Nothing is downloaded: the browser is the one that the machine has, and where there is none, tests
that need it are skipped with the sentence ``MISSING``.
"""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from websockets.sync.client import ClientConnection, connect

T = TypeVar("T", bound="Page")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium was found on the path, nor named by the variable CHROMIUM"
PATIENCE = 60.0  # seconds for anything to happen: a busy machine takes ten to start a browser


def find() -> str | None:
    """The browser's executable, or None."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_page(kind: Callable[[ClientConnection], T]) -> Iterator[T]:
    """Start the browser with one empty page, of the class ``kind``; end it."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    null = subprocess.DEVNULL
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        places = ["--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
        command = [find() or NAMES[0], *options, *places]
        with subprocess.Popen(command, stdout=null, stderr=null) as browser:
            try:
                address = _address(Path(folder) / "DevToolsActivePort")
                with connect(address, max_size=None) as socket:
                    yield kind(socket)
            finally:
                browser.terminate()


def _address(file: Path) -> str:
    """Where to talk to the page, once the browser has written down its port."""
    end = time.monotonic() + PATIENCE
    while not file.exists() or "\n" not in file.read_text():
        assert time.monotonic() < end, "Chromium did not start"
        time.sleep(0.05)
    with urllib.request.urlopen(f"http://127.0.0.1:{file.read_text().split()[0]}/json") as answer:
        tabs = json.load(answer)
    return str(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))


class Page:
    """A page: go somewhere, run JavaScript there, take its picture.

    ``errors`` collects what the page logs as an error: exceptions, files that are not there.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._numbers = socket, itertools.count()
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def _receive(self) -> dict[str, Any]:
        """The next message; errors of the page are noted on the way."""
        message: dict[str, Any] = json.loads(self._socket.recv(timeout=PATIENCE))
        what, told = message.get("method"), message.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.errors.append(str(told["exceptionDetails"].get("exception", told)))
        elif what == "Runtime.consoleAPICalled" and told["type"] == "error":
            self.errors.append(" ".join(str(a.get("value", a)) for a in told["args"]))
        elif what == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        return message

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps(dict(id=number, method=method, params=parameters)))
        while (message := self._receive()).get("id") != number:
            pass
        assert "error" not in message, (method, message["error"])
        result: dict[str, Any] = message["result"]
        return result

    def size(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Size of the window in CSS pixels, and which colours the reader prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def go(self, url: str) -> None:
        """Load a page, and wait until it has."""
        self.send("Page.navigate", url=url)
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, path: Path, whole: bool = False) -> None:
        """A PNG of what the window shows, or of the whole page."""
        size = "({x: 0, y: 0, scale: 1, width: innerWidth, height: document.body.scrollHeight})"
        clip = {"clip": self.run(size)} if whole else {}
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=whole, **clip)
        path.write_bytes(base64.b64decode(shot["data"]))
