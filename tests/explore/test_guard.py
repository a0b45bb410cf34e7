"""Who may talk to the explorer, and how long its simulations run."""

import asyncio
import importlib.util
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from replica import InvalidArgument
from replica.cli import Guard
from replica.cli.explore import release_memory
from replica.explore import DEFAULTS, cached_results, simulate
from tests.explore.explorer import explorer

HOST = "127.0.0.1:2718"


def answers(kind="http", **headers):
    """What is sent back, and the kinds of requests that the application has."""
    sent, seen = [], []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    scope = {"type": kind}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(Guard(app, {HOST})(scope, receive, send))
    return sent, seen


@pytest.mark.parametrize("headers", [{"host": HOST}, {"host": HOST, "origin": f"http://{HOST}"}])
def test_its_own_pages_are_let_in(headers):
    for kind in ("http", "websocket"):
        assert answers(kind, **headers) == ([], [kind])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "example.org:2718"},  # a name that was made to point here
        {"host": "127.0.0.1"},
        {"host": "localhost:2718"},
        {"host": f"{HOST}."},
        {"host": ""},
        {"host": HOST, "origin": "http://example.org"},
        {"host": HOST, "origin": "null"},
        {"host": HOST, "origin": f"https://{HOST}"},
    ],
)
def test_others_are_refused(headers):
    sent, seen = answers(**headers)
    assert (sent[0]["status"], seen) == (403, [])
    sent, seen = answers("websocket", **headers)
    assert [(message["type"], message["code"]) for message in sent] == [("websocket.close", 1008)]
    assert seen == []


def test_a_simulation_ends(monkeypatch):
    monkeypatch.setattr(cached_results, "PATIENCE", 0.5)
    with pytest.raises(InvalidArgument, match=r"done in 0\.5 s"):
        simulate(DEFAULTS)
    assert not cached_results.ALONE.locked()


def test_one_simulation_at_a_time():
    with cached_results.ALONE, pytest.raises(InvalidArgument, match="another page's is running"):
        simulate(DEFAULTS)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems give back memory themselves")
def test_memory_that_nothing_uses_is_given_back():
    """Of parts of 100 kB below one that stays, which the C library keeps for later."""
    parts = [bytearray(b"x" * 100_000) for _ in range(1000)]
    last = bytearray(b"x" * 100_000)
    before = resident()
    parts.clear()
    release_memory()
    assert resident() < before - 80e6 + len(last)


def resident():
    """Memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def status(address, **headers):
    request = urllib.request.Request(address, headers=headers, method=headers.pop("method", "GET"))
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.slow  # a server that imports everything
@pytest.mark.skipif(
    importlib.util.find_spec("marimo") is None, reason="no marimo here: extra [explore]"
)
def test_the_server_asks_for_its_token():
    with explorer() as (address, _):
        place = urlsplit(address)
        assert place.query.startswith("access_token=")
        assert status(address) == 200
        assert status(address, Origin="http://example.org") == 403
        for path in ("api/kernel/set_ui_element_value", "api/kernel/run", "api/kernel/instantiate"):
            call = f"http://{place.netloc}/{path}"
            assert status(call, method="POST") == 401
            assert status(f"{call}?{place.query}", method="POST", Origin="http://a.org") == 403
