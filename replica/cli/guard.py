"""Who may talk to the explorer: its own pages, opened by their address with its token."""

from collections.abc import Awaitable, Callable, MutableMapping
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN: set[str] = set()  # sessions that have a socket: a page each
ALONE = Lock()  # held while one of them simulates


class Guard:
    """An ASGI application before another, which only requests to one of the ``hosts`` reach, and of
    other pages' scripts only those of pages from there.

    A browser names in ``Host`` whom it means to talk to, which another name for this machine gives
    away, and in ``Origin`` whose page it is that talks.  Neither can be set by a page.
    """

    def __init__(self, app: App, hosts: set[str]) -> None:
        self.app, self.hosts = app, hosts
        self.origins = {f"http://{host}" for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and not self.admits(scope):
            await refuse(scope, receive, send)
        elif scope["type"] == "websocket":
            session = parse_qs(scope["query_string"].decode("latin-1")).get("session_id", [""])[0]
            OPEN.add(session)
            try:
                await self.app(scope, receive, send)
            finally:
                OPEN.discard(session)
        else:
            await self.app(scope, receive, send)

    def admits(self, scope: Scope) -> bool:
        """Whether Host and Origin are those of this server; pages are asked for without Origin."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        own = headers.get(b"host") in self.hosts
        return own and headers.get(b"origin", next(iter(self.origins))) in self.origins


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 403, or close a socket before it opens."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    plain = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 403, "headers": plain})
    await send({"type": "http.response.body", "body": b"not from this page\n"})
