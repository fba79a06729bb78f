"""Build the wheel and the source distribution into target/wheels: ``make wheel``.

The wheel is built with a profile where that can be made; where not, that is said, and it is
built without one.
"""

import subprocess
import sys

from profile_guided import ROOT, NoProfileError, build, train

WHEELS = ROOT / "target" / "wheels"


def main() -> None:
    """Build both."""
    try:
        profile = train()
    except NoProfileError as error:
        print(f"wheel: built without a profile: {error}", file=sys.stderr)
        profile = None
    # What others have built there, such as the tests, would stand beside it.
    for stale in WHEELS.glob("flashkeel-*"):
        stale.unlink()
    build(WHEELS, profile)
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(WHEELS)]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
