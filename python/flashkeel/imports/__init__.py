"""Documents of other tools, turned into experiments with a note for all that has no equal."""

from flashkeel.imports.document import Imported
from flashkeel.imports.fio import read_fio
from flashkeel.imports.mqsim import read_mqsim

__all__ = ["Imported", "read_fio", "read_mqsim"]
