"""Redraw the picture of README.md from the result of ``make demo``."""

from pathlib import Path

import flashkeel
from flashkeel import plots

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs/images/tails.png"
DOTS_PER_INCH = 110
"""As sharp as a page needs at about half the size of the saved picture."""

if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    figure = plots.tails(flashkeel.load(ROOT / "out/demo"))
    figure.savefig(PICTURE, dpi=DOTS_PER_INCH)
    print(PICTURE.relative_to(ROOT))
