"""The ``flashkeel`` command, also as ``python -m flashkeel``."""

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command; an interrupt while it starts ends it as any other does."""
    try:
        from flashkeel.cli import main as command

        command()
    except KeyboardInterrupt:
        print("flashkeel: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        # What is left is clearing up.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
