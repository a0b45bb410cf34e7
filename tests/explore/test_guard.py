"""Who may talk to the explorer, and how long its simulations run."""

import asyncio
import importlib.util
import time
import urllib.error
import urllib.request
from threading import Thread, Timer
from urllib.parse import urlsplit

import pytest

from replica import InvalidArgument
from replica.cli import ALONE, OPEN, Guard
from replica.explore import DEFAULTS, simulate
from tests.explore.explorer import explorer

HOST = "127.0.0.1:2718"


def answers(kind="http", query=b"", **headers):
    """What is sent back, and the sessions that are open while the application has the request."""
    sent, seen = [], []

    async def app(scope, receive, send):
        seen.append(set(OPEN))

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    scope = {"type": kind, "query_string": query}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(Guard(app, {HOST})(scope, receive, send))
    return sent, seen


@pytest.mark.parametrize("headers", [{"host": HOST}, {"host": HOST, "origin": f"http://{HOST}"}])
def test_its_own_pages_are_let_in(headers):
    assert answers(**headers) == ([], [set()])
    assert answers("websocket", b"session_id=s_1&file=x", **headers) == ([], [{"s_1"}])
    assert set() == OPEN


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


@pytest.fixture
def session():
    """One that is open, until the test closes it."""
    OPEN.add("s_1")
    yield "s_1"
    OPEN.discard("s_1")


def test_a_simulation_ends_with_its_page(session):
    started = time.monotonic()
    Timer(0.5, OPEN.discard, [session]).start()
    with pytest.raises(InvalidArgument, match="its page open"):
        simulate(DEFAULTS, session)
    assert time.monotonic() - started < 5
    assert not ALONE.locked()


def test_one_simulation_at_a_time(session):
    def first():
        with pytest.raises(InvalidArgument, match="its page open"):
            simulate(DEFAULTS, session)

    thread = Thread(target=first)
    thread.start()
    while not ALONE.locked():
        time.sleep(0.01)
    with pytest.raises(InvalidArgument, match="another page's is running"):
        simulate(DEFAULTS, session)
    OPEN.discard(session)
    thread.join(10)
    assert not thread.is_alive()


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
