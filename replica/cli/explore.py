"""``replica explore``: sliders and figures in a browser, served to this machine alone."""

import os
import secrets
import socket
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidArgument
from .guard import ALONE, OPEN, Guard


def explore(
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of this machine; 0 is any free one.")
    ] = 2718,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no page.")] = False,
) -> None:
    """Sliders beside figures, in a browser; Ctrl-C ends it.

    The address has a token, without which nothing is served, and not to pages of others.

    Examples
    --------
    replica explore

    replica explore --port 8000 --no-browser
    """
    try:
        import marimo
        import uvicorn
    except ModuleNotFoundError:
        extra = "installed with its extra: pip install 'replica-srf[explore]'"
        raise InvalidArgument("the explorer", None, extra) from None
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))  # nobody else's machine reaches it
    except OSError:
        raise InvalidArgument("port", port, "one that is free, or 0 for any") from None
    listening.listen()
    _, port = listening.getsockname()
    token = secrets.token_urlsafe(16)
    address = f"http://127.0.0.1:{port}/?access_token={token}"
    typer.echo(f"the explorer is at {address} (Ctrl-C ends it)", err=True)
    if not no_browser:
        webbrowser.open(address)
    notebook = str(Path(__file__).parents[1] / "explore" / "app.py")
    page = marimo.create_asgi_app(quiet=True, token=token).with_app(path="/", root=notebook).build()
    guarded = Guard(page, {f"{name}:{port}" for name in ("127.0.0.1", "localhost")})
    # open pages get a second when the command ends
    settings = uvicorn.Config(guarded, log_level="critical", timeout_graceful_shutdown=1)
    with suppress(KeyboardInterrupt):  # which is how it ends
        uvicorn.Server(settings).run(sockets=[listening])
    OPEN.clear()  # which ends a simulation
    ALONE.acquire(timeout=5)
    os._exit(0)  # every page that is open has a thread, and an ordinary exit would wait for it
