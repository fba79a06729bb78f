# Everything runs in .venv, made from any Python 3.11 or later:
#   make demo    set up, run the demonstration
#   make test    set up, lint, run every test
#   make checked   the tests of Python on a core that checks its laws and its arithmetic
#   make soak    run what takes longer, for a time: make soak TIME=2h
#   make lint    formatting, clippy, ruff, mypy
#   make docs    regenerate what documents take from the code
#   make site    build the documentation as a site in target/site/html
#   make policies  draw the pictures of the policies anew
#   make wheel   build the wheel, with a profile, and the source distribution into target/wheels
#   make readme  renew the picture and the example of README.md
#   make bench   measure, write target/bench.json and target/bench_serve.json
#   make bench-record   make the instructions counted now the record
#   make bench-profiled   measure what the profile of wheels is worth

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
CORE_SOURCES := $(shell find crates -name target -prune -o -type f -print) Cargo.toml Cargo.lock
# How long `make soak` runs.
TIME ?= 10m

# The random cases of the Rust tests are the same each time.
export PROPTEST_RNG_SEED ?= 1
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: demo test checked soak lint docs site policies wheel readme bench bench-record bench-profiled clean

demo: .venv/core.stamp
	$(BIN)/flashkeel run demo --out out/demo --overwrite

test: lint .venv/core.stamp
	cargo test --workspace
	$(BIN)/python -m pytest

# Whoever needs the core next builds it as it was.
checked: .venv/packages.stamp
	rm -f .venv/core.stamp
	PIP_QUIET=1 $(BIN)/maturin develop --profile checked --quiet
	$(BIN)/python -m pytest

soak: .venv/core.stamp
	$(BIN)/python scripts/soak.py $(TIME)

lint: .venv/packages.stamp
	$(BIN)/ruff format --check python tests scripts
	$(BIN)/ruff check python tests scripts
	$(BIN)/mypy
	find crates -name target -prune -o -name '*.rs' -print0 | xargs -0 rustfmt --check
	cargo clippy --workspace --all-targets -- -D warnings

docs: .venv/core.stamp
	$(BIN)/python scripts/write_docs.py
	$(BIN)/python scripts/write_licences.py

site: .venv/core.stamp
	$(BIN)/python scripts/build_site.py

policies: .venv/core.stamp
	$(BIN)/python scripts/draw_policies.py

wheel: .venv/packages.stamp
	$(BIN)/python scripts/build_wheel.py

readme: demo
	$(BIN)/python scripts/write_readme.py

bench: .venv/core.stamp
	cargo run --release -p flashkeel-host --example bench
	$(BIN)/python scripts/bench_commands.py
	$(BIN)/python scripts/bench_serve.py

bench-record:
	cargo run --release -p flashkeel-host --example bench record

bench-profiled: .venv/core.stamp
	$(BIN)/python scripts/bench_profiled.py

clean:
	rm -rf .venv out target python/flashkeel/_core*.so

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; name one: make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv || { rm -rf .venv; exit 1; }

.venv/packages.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*project["dependencies"], sep="\n")' > .venv/dependencies.txt
	$(BIN)/python -m pip install --quiet --group dev -r .venv/dependencies.txt
	touch $@

# The Python sources are used where they are; only the Rust core needs building.
.venv/core.stamp: .venv/packages.stamp $(CORE_SOURCES)
	PIP_QUIET=1 $(BIN)/maturin develop --release --quiet
	touch $@
