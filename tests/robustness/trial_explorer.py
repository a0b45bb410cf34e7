"""The trial of the explorer: ``python -m tests.robustness.trial_explorer`` sends it requests of its
own pages, of other pages, and of nobody's, from sockets and from a Chromium; a minute or two."""

import json
import socket
import subprocess
import sys
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Thread
from urllib.parse import urlsplit

from tests.explore.browser import open_page
from tests.explore.explorer import button, explorer, load, press, shows

PATHS = (
    "/", "/api/kernel/run", "/api/kernel/instantiate", "/api/kernel/set_ui_element_value",
    "/api/status", "/api/files/list_files", "/ws", "/auth/login", "/../../etc/passwd",
    "/%00", "/" + "a" * 5000, "/nowhere",
)  # fmt: skip
METHODS = "GET", "POST", "PUT", "OPTIONS", "NONSENSE"
BODIES = b"", b"{}", b"[" * 50_000, b"\xff\x00" * 1000
FOREIGN = "example.org", "null", "https://127.0.0.1"


def answer(host, port, request):
    """The status of what is answered to some bytes; 0 where nothing is, or it is cut."""
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(request)
            first = connection.recv(4096).split(b"\r\n")[0].split()
            return int(first[1]) if len(first) > 1 else 0
    except (TimeoutError, OSError, ValueError):
        return 0


def requests(place):
    """(name, bytes, whether it may have an answer of the application) of every request."""
    own, token = place.netloc, place.query
    for (method, path), body in product(product(METHODS, PATHS), BODIES[:1]):
        line = f"{method} {path} HTTP/1.1\r\nHost: {own}\r\nContent-Length: {len(body)}\r\n\r\n"
        yield f"no token: {method} {path[:40]}", line.encode() + body, False
    for origin, path in product(FOREIGN, PATHS[:4]):
        line = f"POST {path}?{token} HTTP/1.1\r\nHost: {own}\r\nOrigin: {origin}\r\n"
        yield f"origin {origin}: {path}", f"{line}Content-Length: 0\r\n\r\n".encode(), False
    for host, path in product(("example.org", "localhost", "127.0.0.1", "", own + "."), PATHS[:4]):
        line = f"GET {path}?{token} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        yield f"host {host!r}: {path}", line.encode(), False
    for body, path in product(BODIES, PATHS[1:4]):
        line = f"POST {path}?{token} HTTP/1.1\r\nHost: {own}\r\nContent-Type: application/json\r\n"
        head = f"{line}Content-Length: {len(body)}\r\n\r\n".encode()
        yield f"body of {len(body)}: {path}", head + body, True
    yield "no HTTP", b"\x16\x03\x01" + bytes(300), False
    yield "half a request", b"GET / HT", False
    yield "its own page", f"GET /?{token} HTTP/1.1\r\nHost: {own}\r\n\r\n".encode(), True


class Foreign(BaseHTTPRequestHandler):
    """A page of somebody else, at another port."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<p>somebody else's</p>")

    def log_message(self, *_):
        pass


def from_another_page(address):
    """What a page of another origin, in a Chromium, gets of the explorer: a list of faults."""
    place, faults = urlsplit(address), []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    Thread(target=server.serve_forever, daemon=True).start()
    with open_page(f"http://127.0.0.1:{server.server_port}/") as page:
        for path, query in product(PATHS[:4], ("", f"?{place.query}")):
            url = f"http://{place.netloc}{path}{query}"
            page.run(
                "window.got = ''; "
                f"fetch({json.dumps(url)}, {{method: 'POST', body: '{{}}'}})"
                ".then(r => window.got = 'status ' + r.status, e => window.got = 'refused'); 1"
            )
            got = page.wait("window.got")
            if got == "status 200":
                faults.append(f"fetch of {path}{query[:5]}: {got}")
        url = f"ws://{place.netloc}/ws?session_id=s_foreign&{place.query}"
        page.run(
            f"window.got = ''; const w = new WebSocket({json.dumps(url)}); "
            "w.onopen = () => window.got = 'open'; w.onerror = () => window.got = 'refused'; 1"
        )
        if page.wait("window.got") != "refused":
            faults.append("a socket of another page was opened")
    server.shutdown()
    return faults, 2 * 4 + 1


def left_over():
    """Command lines of simulations that are running."""
    return subprocess.run(["pgrep", "-fa", "m validation"], capture_output=True, text=True).stdout


def main():
    """Send all; how many failed."""
    tried, failed = 0, 0
    with explorer() as (address, process):
        place = urlsplit(address)
        ask = partial(answer, place.hostname, place.port)
        for name, request, own in requests(place):
            tried += 1
            status = ask(request)
            # what marimo cannot read it may answer with a fault, to those that have the token
            if not own and (status >= 500 or (status == 200 and "/auth/login" not in name)):
                failed += 1
                print(f"{name}: status {status}", flush=True)
        faults, count = from_another_page(address)
        tried, failed = tried + count, failed + len(faults)
        print("\n".join(faults), end="\n" if faults else "")
        for _ in range(5):  # pages that simulate, and are closed
            tried += 1
            with open_page(address) as page:
                load(page)
                press(page, button("simulate networks"))
                time.sleep(1)
            time.sleep(5)
            if left_over():
                failed += 1
                print("a simulation outlives its page:", left_over())
        with open_page(address) as page:
            tried += 1
            load(page)
            if process.poll() is not None or not page.run(shows("test error at")):
                failed += 1
                print("the explorer answers no more")
    print(f"explorer: {tried} tried, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main()))
