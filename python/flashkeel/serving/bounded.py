"""Servers of few connections at a time, a thread each: whoever is too many waits to be let in."""

from __future__ import annotations

import socketserver
import threading
import time
from functools import cached_property
from socket import socket

MOST = 32
"""Connections at a time."""
PAUSE_S = 0.1
"""How long nobody is let in after the system could not, or there was no room."""


_Request = socket | tuple[bytes, socket]


class Bounded(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A server that lets somebody in when there is room for him."""

    daemon_threads = True

    @cached_property
    def _room(self) -> threading.BoundedSemaphore:
        return threading.BoundedSemaphore(MOST)

    def get_request(self) -> tuple[socket, object]:
        """Let somebody in; OSError, which has the server go on waiting, where that cannot be."""
        if not self._room.acquire(timeout=PAUSE_S):
            raise BlockingIOError
        try:
            return super().get_request()
        except OSError:
            # Too many files are open, say: who waits would be heard at once again.
            self._room.release()
            time.sleep(PAUSE_S)
            raise

    def process_request(self, request: _Request, client_address: object) -> None:
        """Answer somebody in a thread of his own."""
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: _Request, client_address: object) -> None:
        """Answer him, and let the next in."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()
