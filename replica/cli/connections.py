"""Connections of the explorer, which are closed unless their requests come whole in time.

Imported by the command alone, as it needs uvicorn.
"""

from asyncio import TimerHandle
from typing import Any

from h11 import IDLE, SEND_BODY
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0  # seconds for a request; an answered one has uvicorn's five until the next


class Connection(H11Protocol):
    """A connection that is closed PATIENCE seconds after a request began that is not whole."""

    late: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.await_request()

    def data_received(self, data: bytes) -> None:
        """Go on waiting where this is a part of a request; stop where it is whole."""
        super().data_received(data)
        http = self.transport.get_protocol() is self  # and no socket by now
        if http and self.conn.their_state in (IDLE, SEND_BODY):
            self.await_request()
        else:
            self.stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self.stop_waiting()
        super().connection_lost(exc)

    def await_request(self) -> None:
        """Close the connection in PATIENCE seconds, counted from the first part of the request."""
        if self.late is None:
            self.late = self.loop.call_later(PATIENCE, self.transport.close)

    def stop_waiting(self) -> None:
        """Leave the connection open."""
        if self.late is not None:
            self.late.cancel()
            self.late = None
