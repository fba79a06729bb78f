"""A socket on which a server is asked what is going on: a command a line, an answer a line.

Commands are ``state`` (counts since the start, the device's gauges) and ``recent`` (the last
minute as the run of a result). Answers are JSON; ``{"error": ...}`` to anything else.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from contextlib import ExitStack, contextmanager, suppress
from os.path import samestat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashkeel._core import InputError, listen_unix
from flashkeel.parsing import parse_json
from flashkeel.serving.bounded import Bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flashkeel._core import Serving

MOST_BYTES = 4096
"""A line of a command, at most."""
PATIENCE_S = 10
"""How long a client may take to say a command."""


class _Handler(socketserver.StreamRequestHandler):
    timeout = PATIENCE_S
    server: _Server

    def handle(self) -> None:
        """Answer commands until the client goes."""
        try:
            while line := self.rfile.readline(MOST_BYTES):
                if not line.endswith(b"\n"):
                    return
                self.wfile.write(self.server.answer(line.decode(errors="replace").strip()) + b"\n")
        except OSError:
            # It has gone, or says nothing.
            return


class _Server(Bounded, socketserver.UnixStreamServer):
    serving: Serving

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(fileno=listen_unix(str(path)))
        self.path, self.found = path, path.lstat()

    def server_close(self) -> None:
        """Remove the socket and close it, in this order: nobody takes its place in between."""
        with suppress(FileNotFoundError):
            if samestat(self.path.lstat(), self.found):
                self.path.unlink()
        super().server_close()

    def answer(self, command: str) -> bytes:
        """Return the answer to a command, as a line without its end."""
        commands = {"state": self.serving.state, "recent": self.serving.recent}
        if command not in commands:
            known = ", ".join(commands)
            return json.dumps({"error": f"unknown command {command[:40]!r}: {known}"}).encode()
        found = commands[command]()
        return (found or json.dumps({"error": "the server is ending"})).encode()


def address(text: str) -> Path:
    """Return the path in ``unix:PATH``."""
    scheme, _, path = text.partition(":")
    if scheme != "unix" or not path:
        raise InputError(f"{text}: write unix:PATH, such as unix:/tmp/drive.ctl")
    return Path(path)


@contextmanager
def listening(path: Path) -> Iterator[Callable[[Serving], None]]:
    """Take `path` for a socket, as long as the context lasts.

    Yields what begins to answer commands there, in threads.
    """
    server = _Server(path)

    def answer(serving: Serving) -> None:
        server.serving = serving
        ending.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    with ExitStack() as ending:
        ending.callback(server.server_close)
        yield answer


def ask(path: Path, command: str) -> dict[str, Any]:
    """Return the answer of the server at `path` to a command."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(str(path))
            client.sendall(f"{command}\n".encode())
            with client.makefile("rb") as answers:
                line = answers.readline()
    except OSError as error:
        raise InputError(f"unix:{path}: {error.strerror or error}") from error
    try:
        found = parse_json(line)
    except ValueError as error:
        raise InputError(f"unix:{path}: no server of flashkeel answers there") from error
    if not isinstance(found, dict) or "error" in found:
        said = found["error"] if isinstance(found, dict) else "no answer"
        raise InputError(f"unix:{path}: {said}")
    return found
