"""``replica explore``: sliders and figures in a browser, served to this machine alone.

Only its own pages reach it, opened by their address with its token.
"""

import asyncio
import ctypes
import gc
import os
import secrets
import socket
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InvalidArgument, install

KEPT = 60  # seconds that a closed page can be opened again as it was


class Guard:
    """An ASGI application that passes only requests to one of the ``hosts``, from its own pages.

    A browser names in ``Host`` the server that it addresses, and in ``Origin`` the page that sends
    the request.  Neither can be set by a page.
    """

    def __init__(self, app: Any, hosts: set[str]) -> None:
        self.app, self.hosts = app, hosts
        self.origins = {f"http://{host}" for host in hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan" and not self.admits(scope):
            await refuse(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            if scope["type"] == "websocket":  # a page
                asyncio.get_running_loop().call_later(KEPT + 5, release_memory)

    def admits(self, scope: Any) -> bool:
        """True if Host, and Origin where there is one, name this server; a page is asked for
        without Origin."""
        request_headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        request_host, page_origin = request_headers.get(b"host"), request_headers.get(b"origin")
        return request_host in self.hosts and (page_origin is None or page_origin in self.origins)


def release_memory() -> None:
    """Return the memory of closed pages to the system: the C library of Linux would keep it."""
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # on other systems
        ctypes.CDLL(None).malloc_trim(0)


async def refuse(scope: Any, receive: Any, send: Any) -> None:
    """Answer 403, or close a socket before it opens."""
    from starlette.responses import PlainTextResponse
    from starlette.websockets import WebSocketClose

    if scope["type"] == "websocket":
        await receive()
        await WebSocketClose(code=1008)(scope, receive, send)
    else:
        await PlainTextResponse("not from this page\n", status_code=403)(scope, receive, send)


def explore(
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of this machine; 0 is any free one.")
    ] = 2718,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no page.")] = False,
) -> None:
    """Sliders beside figures, in a browser; Ctrl-C ends it.

    It needs the extra explore: python3 -m pip install '.[explore]' in the clone.  The address has a
    token, without which nothing is served, and not to pages of others.

    Examples
    --------
    replica explore

    replica explore --port 8000 --no-browser
    """
    try:
        import marimo
        import uvicorn
    except ModuleNotFoundError:
        needed_extra = f"installed with its extra: {install('explore')}"
        raise InvalidArgument("the explorer", None, needed_extra) from None
    try:
        server_socket = socket.create_server(("127.0.0.1", port))  # no other machine reaches it
    except OSError:
        raise InvalidArgument("port", port, "one that is free, or 0 for any") from None
    _, port = server_socket.getsockname()
    page_token = secrets.token_urlsafe(16)
    page_address = f"http://127.0.0.1:{port}/?access_token={page_token}"
    typer.echo(f"the explorer is at {page_address} (Ctrl-C ends it)", err=True)
    if not no_browser:
        webbrowser.open(page_address)
    notebook = str(Path(__file__).parents[1] / "explore" / "app.py")
    served_pages = marimo.create_asgi_app(quiet=True, token=page_token, session_ttl=KEPT)
    served_page = served_pages.with_app(path="/", root=notebook).build()
    guarded = Guard(served_page, {f"{name}:{port}" for name in ("127.0.0.1", "localhost")})
    # open pages get a second when the command ends
    server_options = uvicorn.Config(guarded, log_level="critical", timeout_graceful_shutdown=1)
    with suppress(KeyboardInterrupt):  # which is how it ends
        uvicorn.Server(server_options).run(sockets=[server_socket])
    os._exit(0)  # every page that is open has a thread, and an ordinary exit would wait for it
