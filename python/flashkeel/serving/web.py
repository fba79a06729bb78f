"""What a browser and Prometheus are shown of a served drive: a page, its data, and metrics."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import resources
from typing import TYPE_CHECKING

from flashkeel._core import InputError
from flashkeel.serving.bounded import Bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flashkeel._core import Serving

PATIENCE_S = 10
"""How long a client may take to ask."""

_SAFE = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"
)
"""The page loads nothing from elsewhere."""


@contextmanager
def listening(place: str, name: str) -> Iterator[Callable[[Serving], str]]:
    """Take ``ADDRESS:PORT``, as long as the context lasts.

    Yields what begins to answer there, in threads, and returns where the page is. InputError
    where nobody can listen there; UnicodeEncodeError where it is no UTF-8.
    """
    # Prometheus is for those who ask for it: it takes time to be imported.
    from flashkeel.serving import metrics

    # Python's own refusal of such a name is a TypeError.
    place.encode()
    host, _, port = place.rpartition(":")
    is_host = re.fullmatch(r"\[[^\[\]]+\]|[^\[\]:]+", host)
    if not is_host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 0xFFFF:
        raise InputError(f"--metrics {place}: write ADDRESS:PORT, such as 127.0.0.1:9100")
    page = resources.files("flashkeel.serving").joinpath("page.html").read_bytes()

    pages: dict[str, tuple[str, Callable[[], bytes | None]]] = {}

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S

        def handle(self) -> None:
            """Answer until the client goes, which it may at any time."""
            with suppress(ConnectionError):
                super().handle()

        def do_GET(self) -> None:
            """Answer with a page, if there is one of that name."""
            if (body := self._begin()) is not None:
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            """Answer as to GET, without the page itself."""
            self._begin()

        def _begin(self) -> bytes | None:
            """Send what stands before the page asked for, and return that, if there is one."""
            found = pages.get(self.path.partition("?")[0])
            if found is None:
                self.send_error(HTTPStatus.NOT_FOUND, f"there are {', '.join(pages)}")
                return None
            kind, make = found
            body = make()
            if body is None:
                self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "serving has ended")
                return None
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", _SAFE)
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            return body

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing of each request."""

    class Server(Bounded, HTTPServer):
        # As in an address of --listen.
        address_family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET

    try:
        server = Server((host.strip("[]"), int(port)), Handler)
    except OSError as error:
        raise InputError(f"--metrics {place}: {error.strerror or error}") from error

    def answer(serving: Serving) -> str:
        def state() -> bytes | None:
            said = serving.state()
            return None if said is None else said.encode()

        pages["/"] = ("text/html; charset=utf-8", lambda: page)
        pages["/state.json"] = ("application/json", state)
        pages["/metrics"] = (metrics.CONTENT_TYPE, metrics.page(name, serving))
        ending.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://{host}:{server.server_address[1]}/"

    with ExitStack() as ending:
        ending.callback(server.server_close)
        yield answer
