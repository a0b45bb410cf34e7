"""Connections of the explorer: closed where a request does not come whole, open where it does."""

import socket
import time
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

uvicorn = pytest.importorskip("uvicorn", reason="no uvicorn here: extra [explore]")

from websockets.sync.client import connect  # noqa: E402

from replica.cli import connections  # noqa: E402

HOST = "127.0.0.1"
WHOLE = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody"
HALVES = {
    "nothing": b"",
    "half of its head": WHOLE[:20],
    "half of its body": WHOLE[:-2],
    "a whole one and half of another": WHOLE + WHOLE[:20],
}


async def application(scope, receive, send):
    """Echoes what a socket sends; answers a request once its body is there."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while "text" in (message := await receive()):
            await send({"type": "websocket.send", "text": message["text"]})
    elif scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"answer"})


@contextmanager
def served(patience, monkeypatch):
    """The port of a server whose connections have that many seconds for a request."""
    monkeypatch.setattr(connections, "PATIENCE", patience)
    kind = connections.Connection
    options = {"log_level": "critical", "lifespan": "off", "timeout_keep_alive": 1}
    config = uvicorn.Config(application, http=kind, timeout_graceful_shutdown=1, **options)
    server = uvicorn.Server(config)
    with socket.create_server((HOST, 0)) as listening:
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_half_a_request_is_waited_for_no_longer_than_a_whole_one_may_take(sent, monkeypatch):
    with served(0.4, monkeypatch) as port, socket.create_connection((HOST, port)) as client:
        client.settimeout(5)
        client.sendall(sent)
        start = time.monotonic()
        with suppress(ConnectionResetError):
            while client.recv(1000):
                pass
        assert 0.3 < time.monotonic() - start < 3


def test_whole_requests_and_sockets_stay(monkeypatch):
    """A socket for as long as its page is open, a request in parts until it is answered."""
    with served(0.4, monkeypatch) as port, connect(f"ws://{HOST}:{port}/") as page:
        with socket.create_connection((HOST, port)) as client:
            for part in (WHOLE[:30], WHOLE[30:]):
                client.sendall(part)
                time.sleep(0.1)
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
            time.sleep(0.5)
            client.sendall(WHOLE)
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        page.send("still here")
        assert page.recv(timeout=5) == "still here"
