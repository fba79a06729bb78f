"""``python -m flashkeel`` is the ``flashkeel`` command."""

from flashkeel.cli import main

if __name__ == "__main__":
    main()
