"""The ``flashkeel`` command, also as ``python -m flashkeel``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command; an interrupt while it starts ends it as any other does."""
    # Imports take time, in which nothing would catch it but this.
    try:
        from flashkeel.cli import main as command

        command()
    except KeyboardInterrupt:
        import sys

        print("flashkeel: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        import signal

        # What is left is clearing up.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Python notes an interrupt of code that it made of text, as dataclasses are made, and
        # lets it end a program that was started with -m, whoever has caught it meanwhile. It
        # forgets that before it runs other text.
        exec("")


if __name__ == "__main__":
    main()
