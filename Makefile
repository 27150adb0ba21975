# The same commands as CI. `make demo` and `make test` set everything up on a fresh clone; they
# need Python 3.11 or newer, Rust and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
EXTRAS := dev,torch,sklearn,onnx,spark,charts,optuna

RUST_SOURCES := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi') pyproject.toml README.md

CALLS ?= 1000000
FIRST ?= 0
SEED ?= 1

.PHONY: demo test check calibration bench atlas papers docs fuzz mutants lock clean

demo: $(VENV)/.wheel
	mkdir -p target
	$(BIN)/fairaudit demo --output target/demo.md

test: $(VENV)/.extras $(VENV)/.wheel
	cargo test --locked --workspace --exclude fairaudit-benches
	$(BIN)/python -m pytest -m "not calibration" --numprocesses auto

check: $(VENV)/.extras $(VENV)/.wheel
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest fairaudit_rs._native
	$(BIN)/python -m tests.write_docs --check
	$(BIN)/python -m tests.write_notices --check
	$(BIN)/python -m tests.plain_english

calibration: $(VENV)/.extras $(VENV)/.wheel
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m calibration --numprocesses auto

bench: $(VENV)/.extras $(VENV)/.bench $(VENV)/.wheel
	cargo bench --locked -p fairaudit-benches
	$(BIN)/python benches/python/imports.py
	$(BIN)/python benches/python/permutation.py
	$(BIN)/python benches/python/projection.py
	$(BIN)/python benches/python/individual.py
	$(BIN)/python benches/python/influence.py
	$(BIN)/python benches/python/extremes.py
	$(BIN)/python benches/python/audit.py

# Goes on where it was stopped; the results are in target/atlas*.jsonl. Each part runs alone, too.
atlas: $(VENV)/.extras $(VENV)/.wheel
	$(BIN)/python benches/python/atlas.py
	$(BIN)/python benches/python/atlas_projection.py
	$(BIN)/python benches/python/atlas_individual.py
	$(BIN)/python benches/python/atlas_influence.py
	$(BIN)/python benches/python/atlas_extremes.py
	$(BIN)/python benches/python/atlas_audit.py
	$(BIN)/python benches/python/atlas_compare.py
	$(BIN)/python benches/python/atlas_words.py

# Tables of the papers, and verdicts, on the public data sets (FAIRAUDIT_DATA); about half an hour.
papers: $(VENV)/.extras $(VENV)/.bench $(VENV)/.wheel
	$(BIN)/python -m benches.papers.projection --variants --write
	$(BIN)/python -m benches.papers.individual --variants --write
	$(BIN)/python -m benches.papers.influence --write
	$(BIN)/python -m benches.papers.extremes --write
	$(BIN)/python -m benches.papers.verdicts --write

docs: $(VENV)/.extras $(VENV)/.wheel
	$(BIN)/python -m tests.write_docs
	$(BIN)/python -m tests.write_notices

# Hostile calls, as many as asked for; goes on where it was stopped, whoever did (tests/hostile/ledger.json).
fuzz: $(VENV)/.extras $(VENV)/.wheel
	$(BIN)/python -m tests.hostile --calls $(CALLS) --first $(FIRST) --seed $(SEED)

# Changes the core in 60 places, one at a time, and looks whether the tests notice; goes on where it was stopped.
mutants: $(VENV)/.extras target/tools/bin/cargo-mutants
	$(BIN)/python benches/python/mutants.py --write

target/tools/bin/cargo-mutants:
	cargo install cargo-mutants --version 27.1.0 --locked --quiet --root target/tools

# Pins every dependency anew; run it after a change to pyproject.toml.
lock: $(VENV)/.extras
	$(PIP) install uv
	$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --all-extras --python-version 3.11 \
		--no-annotate --no-header --output-file constraints.txt
	cargo update

clean:
	rm -rf $(VENV) target dist

$(VENV)/.tools: constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python"; exit 1; }
	@command -v cargo > /dev/null || { echo "Rust (cargo) is needed"; exit 1; }
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt maturin
	touch $@

$(VENV)/.wheel: $(VENV)/.tools $(RUST_SOURCES) $(PYTHON_SOURCES)
	rm -rf dist
	$(BIN)/maturin build --quiet --release --out dist
	$(PIP) install --constraint constraints.txt dist/*.whl
	$(PIP) install --force-reinstall --no-deps dist/*.whl
	touch $@

$(VENV)/.bench: $(VENV)/.extras constraints.txt pyproject.toml
	$(PIP) install --constraint constraints.txt "$$(ls dist/*.whl)[bench]"
	touch $@

# torch brings its CUDA parts from the registry (about 3 GB) and runs on the CPU.
$(VENV)/.extras: $(VENV)/.tools constraints.txt pyproject.toml | $(VENV)/.wheel
	$(PIP) install --constraint constraints.txt "$$(ls dist/*.whl)[$(EXTRAS)]"
	touch $@
