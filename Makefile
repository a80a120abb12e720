# Everything sets itself up: only Python 3.11 or later, pip and make are needed.
PYTHON ?= python3
VENV := .venv
BENCH_VENV := .bench-venv
PEER_VENV := .peer-venv
BIN := $(VENV)/bin
PIP_OPTIONS := --quiet --disable-pip-version-check --constraint constraints.txt

# Each worker does its linear algebra alone: threads of several would only wait for each other. Workers
# go through files in order and steal single tests at the end, so fixtures of a file are made about once.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

.PHONY: help setup demo wheel release-check docs quick test lint format fuzz bench reproduce clean

help:  ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup: $(VENV)/ready  ## Make the virtual environment with the package and its tools.

# The package alone: what the demo needs, and nothing else. Bytecode is made when it is first needed.
$(VENV)/core: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) with the package (once, about half a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install $(PIP_OPTIONS) --no-compile setuptools
	@$(BIN)/pip install $(PIP_OPTIONS) --no-compile --no-build-isolation --editable .
	@touch $@

# The rest: tests, types, style, Spark, a browser and the documentation.
$(VENV)/ready: $(VENV)/core
	@echo "Adding what the tests need to $(VENV) (once, a few minutes) ..."
	@$(BIN)/pip install $(PIP_OPTIONS) --no-build-isolation --editable '.[dev]'
	@touch $@

demo: $(VENV)/core  ## A short tour on a table that ships with the package.
	@$(BIN)/juncture demo --force

wheel: $(VENV)/core  ## Wheels with the compiled routines inside, in dist/; prints their sizes.
	@$(BIN)/pip install $(PIP_OPTIONS) --no-compile --no-build-isolation --editable '.[build]'
	@$(BIN)/python tools/build_wheel.py

release-check: $(VENV)/core  ## Build, install in empty environments, run the demo and the README.
	@$(BIN)/pip install $(PIP_OPTIONS) --no-compile --no-build-isolation --editable '.[build]'
	@$(BIN)/python tools/release_check.py

docs: setup  ## The documentation as a site, in site/; needs no network.
	@$(BIN)/python -m mkdocs build --strict --quiet
	@echo "Wrote site/. Open site/index.html; to search, serve it: $(PYTHON) -m http.server -d site"

quick: lint  ## Style, types and the fast tests, in about a minute.
	$(PYTEST) -m "not slow" --hypothesis-profile quick

test: lint  ## Style, types and all tests.
	$(PYTEST)

lint: setup  ## Style and strict types.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup  ## Rewrite the sources in the project's style.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(BENCH_VENV)/ready: bench/constraints.txt
	@echo "Setting up $(BENCH_VENV) with the peers (once) ..."
	@test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	@$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check \
		--constraint bench/constraints.txt mbi pyagrum scikit-learn
	@# For its example networks alone, which are files: nothing of it is imported.
	@$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check \
		--constraint bench/constraints.txt --no-deps pgmpy
	@touch $@

# For as long as one likes: make fuzz MINUTES=60 SEED=7. What fails is printed with what does it.
MINUTES ?= 10
SEED ?=

fuzz: setup  ## Attack everything that reads what a stranger wrote, for MINUTES.
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz/run.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

bench: setup $(BENCH_VENV)/ready  ## Time the package beside its peers, in one run.
	@$(BIN)/python bench/compare.py --peer-python $(BENCH_VENV)/bin/python
	@$(BIN)/python bench/networks.py --peer-python $(BENCH_VENV)/bin/python
	@$(BIN)/python bench/questions.py
	@$(BIN)/python bench/intervals.py
	@$(BIN)/python bench/small_queries.py
	@$(BIN)/python bench/wide_tables.py
	@$(BIN)/python bench/persons.py
	@$(BIN)/python bench/persons.py --engine spark
	@$(BIN)/python bench/private_values.py
	@$(BIN)/python bench/predicted_times.py
	@$(BIN)/python bench/explorer_load.py
	@$(BIN)/python bench/first_minute.py
	@$(BIN)/python bench/wide_fits.py --peer-python $(BENCH_VENV)/bin/python

# dpsynth is on no package index, needs Python 3.12 and names two of its dependencies by repository:
# these are taken from the index instead. Where it cannot be had, the rows that are kept are shown.
PEER_PYTHON ?= python3.12
DPSYNTH := git+https://github.com/google/dpsynth@cf8075f319b96c2e009e4ea6bb55378faccbbc80

$(PEER_VENV)/ready: experiments/peer-constraints.txt
	@echo "Setting up $(PEER_VENV) with dpsynth (once) ..."
	@test -x $(PEER_VENV)/bin/python || $(PEER_PYTHON) -m venv $(PEER_VENV)
	@$(PEER_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@$(PEER_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps '$(DPSYNTH)'
	@touch $@

# The folder of the paper's data sets that do not ship with the package: make reproduce DATA=FOLDER.
DATA ?= $(JUNCTURE_DATA)

reproduce: setup $(BENCH_VENV)/ready  ## The paper's tables and figures, anew where results are missing.
	@$(MAKE) --no-print-directory $(PEER_VENV)/ready || echo "Without dpsynth: its kept rows are shown."
	@$(BIN)/python experiments/reproduce.py --peer-python $(BENCH_VENV)/bin/python \
		$$(test -e $(PEER_VENV)/ready && echo --dpsynth-python $(PEER_VENV)/bin/python) \
		$(if $(DATA),--data $(DATA))

clean:  ## Remove what the other targets made.
	rm -rf $(VENV) $(BENCH_VENV) $(PEER_VENV) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
