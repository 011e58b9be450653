# Each target sets up .venv by itself; only Python 3.11 or newer and make are needed beforehand.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

# Tests of kernels on small data, quick enough for plain Python.
PLAIN := tests/kernels tests/laws/test_ranking_oracles.py tests/laws/test_latent_oracles.py \
	tests/tasks/test_ranking.py tests/learning/test_latent.py tests/metrics/test_evaluation.py \
	tests/metrics/test_ranking.py tests/polytope/test_frank_wolfe.py tests/structures/test_tree.py \
	tests/structures/test_projective_tree.py tests/structures/test_matching.py \
	tests/structures/test_top_k.py tests/structures/test_sequence.py tests/cli/test_warm.py

.PHONY: demo test kernels fuzz survive clients lint format bench rerank docs clean
.DEFAULT_GOAL := demo

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

demo: $(READY)  ## train, compare and report on text that is on every machine
	$(BIN)/didyma demo

test: $(READY) lint kernels  ## every check that a change must pass
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

kernels: $(READY)  ## kernels as plain Python, and with every index checked
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --quiet --numprocesses auto $(PLAIN)
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest --quiet --numprocesses auto --dist loadfile \
		tests/fuzz tests/kernels/test_binned.py tests/tasks/test_ranking.py

fuzz: $(READY)  ## the tests with damaged files, for longer
	DIDYMA_FUZZ_ROUNDS=2000 $(BIN)/python -m pytest tests/fuzz --numprocesses auto

survive: $(READY)  ## training that is killed at a hundred random moments, and goes on
	$(BIN)/python -m tests.survival.trials --trials 100

clients: $(READY)  ## client packages of rerank services against the server (takes minutes)
	$(BIN)/python -m clients

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## speed against peers and physical limits, as ratios
	$(BIN)/python -m benchmarks --peers

rerank: $(READY)  ## rerankers of texts on eight collections, where these are at hand
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,vectors]"
	$(BIN)/python reproductions/rerank.py --write

docs: $(READY)  ## run the examples and regenerate the command line reference
	$(BIN)/python docs/build.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
