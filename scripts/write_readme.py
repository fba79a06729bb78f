"""Renew the picture and the example of README.md from the demo's result: ``make readme``."""

import re
import subprocess
import sys
from pathlib import Path

import flashkeel
from flashkeel.output import plots

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PICTURE = ROOT / "docs/images/tails.png"
DOTS_PER_INCH = 110
"""As sharp as a page needs, at two thirds of the size of the saved picture."""


def example(demo: str) -> str:
    """Return the example's command and what it prints."""
    arguments = ["explain", f"{demo}:debit", "--above", "p99.9"]
    command = [sys.executable, "-m", "flashkeel", *arguments]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = [f"$ .venv/bin/flashkeel {' '.join(arguments)}", *map(str.rstrip, printed.splitlines())]
    return "\n".join(line for line in lines if line)


def main(demo: str) -> None:
    """Write both from the result in the folder `demo`."""
    figure = plots.tails(flashkeel.load(ROOT / demo))
    figure.savefig(PICTURE, dpi=DOTS_PER_INCH)
    before, after = re.split(r"\$ \.venv/bin/flashkeel explain[^`]*", README.read_text())
    README.write_text(f"{before}{example(demo)}\n{after}")


if __name__ == "__main__":
    main("out/demo")
