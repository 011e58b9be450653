# Each target sets up .venv by itself; only Python 3.11 or newer and make are needed beforehand.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test fuzz lint format bench docs clean
.DEFAULT_GOAL := demo

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

demo: $(READY)  ## train, compare and report on text that is on every machine
	$(BIN)/didyma demo

test: $(READY) lint  ## every check that a change must pass
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

fuzz: $(READY)  ## the tests with damaged files, for longer
	DIDYMA_FUZZ_ROUNDS=2000 $(BIN)/python -m pytest tests/fuzz --numprocesses auto

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## speed against peers and physical limits, as ratios
	$(BIN)/python -m benchmarks --peers

docs: $(READY)  ## run the examples and regenerate the command line reference
	$(BIN)/python docs/build.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
