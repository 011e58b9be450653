# Each target sets up .venv by itself; only Python 3.11 or newer and make are needed beforehand.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

# What is run once more with every index of the core checked.
CHECKED := tests/core tests/fuzz tests/laws/test_ranking_oracles.py \
	tests/laws/test_latent_oracles.py tests/ranking/test_problem.py tests/metrics tests/structures \
	tests/polytope

# A finding ends the process, and must not be captured. None are: what Python never gives back, what pytrec_eval frees
# by another name, and allocations that NumPy asks for in vain.
LIBRARY := $${CXX:-g++} -print-file-name
SANITIZERS := ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0:allocator_may_return_null=1 \
	UBSAN_OPTIONS=print_stacktrace=1 LD_PRELOAD="$$($(LIBRARY)=libasan.so) $$($(LIBRARY)=libstdc++.so.6)"

# What other versions are tested by, without PyTorch: data, files, measures, learners, rerankers.
TORCHLESS := tests/cli/test_checkpointing.py tests/cli/test_commands.py tests/data tests/learning \
	tests/metrics tests/nbest tests/polytope tests/ranking tests/structures tests/text \
	tests/model/test_container.py tests/model/test_fields.py tests/model/test_predictor.py
BUILDERS := cmake editables hatchling nanobind ninja numpy
COMPILER = $(if $(shell command -v $${CXX:-c++} g++ clang++),,ziglang)
NO_COMPILER = { echo "no C++ compiler, and none from the package index: install g++ or clang++" >&2; exit 1; }
CORE = $(shell find src/core -name "*.hpp" -o -name "*.cpp")
CIBUILDWHEEL := 4.3.3
TESTERS := httpx hypothesis pandas polars pytest pytest-xdist threadpoolctl

# Of a run of `make fuzz`; each has a seed of its own, which it prints.
SECONDS ?= 600
SEED ?= $(shell date +%s)

.PHONY: core demo test checked sanitized fuzz survive clients lint format bench reproduce generate docs lowest \
	newest wheels release-check clean
.DEFAULT_GOAL := demo

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt $(BUILDERS)
	$(if $(COMPILER),$(BIN)/python -m pip install --quiet --no-compile $(COMPILER) || $(NO_COMPILER))
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt \
		--no-build-isolation --editable ".[dev]"
	touch $(READY)

core: $(READY)  ## compile what has changed of the C++ core
	$(BIN)/python hatch_build.py

demo: core  ## train, compare and report on text that is on every machine
	$(BIN)/didyma demo

test: core  ## every check that a change must pass
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint checked
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

checked: $(READY)  ## the core with every index checked
	$(BIN)/python hatch_build.py --build checked
	DIDYMA_CORE=checked $(BIN)/python -m pytest --quiet --numprocesses auto --dist loadfile \
		-k "not model-" $(CHECKED)

sanitized: $(READY)  ## the same under address and undefined-behaviour sanitizers (takes minutes)
	$(BIN)/python hatch_build.py --build sanitized
	DIDYMA_CORE=sanitized $(SANITIZERS) $(BIN)/python -m pytest --quiet --capture no -k "not model-" $(CHECKED)

fuzz: $(READY)  ## damaged inputs to everything that reads any, for SECONDS, with every index checked
	$(BIN)/python hatch_build.py --build checked
	DIDYMA_CORE=checked $(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED)

survive: $(READY)  ## training that is killed at a hundred random moments, and goes on
	$(BIN)/python -m tests.survival.trials --trials 100

clients: $(READY)  ## client packages of rerank services against the server (takes minutes)
	$(BIN)/python -m clients

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror $(CORE)
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CORE)

bench: $(READY)  ## speed against peers and physical limits, as ratios
	$(BIN)/python -m benchmarks --peers

reproduce: $(READY)  ## every table of docs/RESULTS.md, where the data are at hand (hours)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,vectors]"
	$(BIN)/python -m reproductions

generate: $(READY)  ## pages from what the library does: commands, examples, pictures, figures
	$(BIN)/python docs/build.py

docs: $(READY)  ## the site, in build/site; it needs no network, neither here nor in a browser
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,docs]"
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -c docs/site docs build/site
	@echo "open build/site/index.html"

lowest: VERSIONS := release/lowest.txt
newest: VERSIONS := constraints.txt
lowest newest:  ## tests without PyTorch: with the lowest versions of all; with PYTHON=python3.13
	$(PYTHON) -m venv .$@
	.$@/bin/python -m pip install --quiet --no-compile --constraint $(VERSIONS) \
		--editable ".[tables,report,serve]" $(TESTERS)
	.$@/bin/python -m pytest -q -W default::DeprecationWarning --numprocesses auto --dist loadfile \
		$(TORCHLESS)

wheels:  ## of this system, in build/wheels, each tested; on Linux in a container (Docker)
	pipx run cibuildwheel==$(CIBUILDWHEEL) --output-dir build/wheels

release-check:  ## wheel and sdist, in fresh environments: the core, each extra, types, bills of materials
	$(PYTHON) -m release.check

clean:
	rm -rf .venv .lowest .newest build docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis
