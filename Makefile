# Everything a developer does here. Needs make and Python 3.11 or newer; the rest comes from the locks.

VENV := .venv
BIN := $(VENV)/bin
# Choose an interpreter with `make setup PYTHON=python3.13`; otherwise the first that is new enough.
PYTHON ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run quick quick-tests test tests-in-parallel check lint types imports pages full newest-postgres bench faults docs schema lock measures shots bench-guard clean

help: ## Show every target with its line
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.run pages ## Create .venv, install the product into it, build its pages

setup-dev: $(VENV)/.dev pages ## Add what tests and checks need

# Takes a second when nothing has changed. Without Node or npm's registry it says so, and all but the pages is there.
pages: $(VENV)/.run ## Build the web pages when they have changed
	@$(BIN)/python tools/pages.py

run: setup ## Serve both with demonstration data: the store on :8480, records on :8080
	$(BIN)/countersign serve --demo --data data

# The checks beside the tests: types alone take half a minute of one processor.
quick: setup-dev ## Check, and run the tests that start no process, on SQLite: at most three minutes
	@$(MAKE) --no-print-directory --jobs=2 --keep-going check quick-tests

quick-tests:
	@$(BIN)/python -m pytest --quick --quiet --numprocesses=auto --dist=worksteal

test: setup-dev ## Check, and run all tests but the long ones
	@$(MAKE) --no-print-directory --jobs=2 --keep-going check tests-in-parallel

# Two workers more than there are processors, up to four: many tests wait for a process or a deadline.
tests-in-parallel:
	$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

check: lint types imports ## Lint, types and import rules

# Without a cache: what is right in one file depends on which modules there are.
lint: setup-dev ## Style and likely bugs
	$(BIN)/ruff check --no-cache .

types: setup-dev $(VENV)/.types ## Types, strictly, unless no source has changed since they were last right
	@$(BIN)/python tools/pages.py --check

imports: setup-dev ## Who may import whom
	PYTHONPATH=src $(BIN)/lint-imports --no-cache

# Interrupted, it goes on with what docs/results does not show as done at this commit.
full: check ## All tests, the long ones too, then the benchmarks
	$(BIN)/python -m pytest --full; outcome=$$?; $(BIN)/python tools/found.py; exit $$outcome
	@$(MAKE) --no-print-directory bench RESUME=--resume

# Without Node or npm's registry it says so and runs nothing.
newest-postgres: setup-dev ## Run the tests of connected tables on the newest PostgreSQL of npm's registry
	@folder=$$($(BIN)/python tools/newest_postgres.py); \
	if [ -n "$$folder" ]; then COUNTERSIGN_TEST_POSTGRES=$$folder $(BIN)/python -m pytest tests/adopted tests/connect; fi

RESUME :=
bench: setup-dev ## Run every benchmark in bench/
	@set -e; for file in $$(grep -l 'with harness.bench(' bench/[a-z]*.py); do \
	  echo "== $$file"; $(BIN)/python "$$file" $(RESUME); done; \
	for file in bench/updates.py bench/ask.py bench/storefront.py; do echo "== $$file"; $(BIN)/python "$$file"; done

bench-guard: setup-dev ## Compare six kinds of requests with the commit in bench/baseline; fail if one is slower
	$(BIN)/python bench/guard.py

# Interrupted, it goes on with what docs/results/faults.jsonl does not show as passed at this commit. So does `full`.
faults: setup-dev ## Kill, fill and cut at the stated numbers; figures into docs/results/faults.jsonl
	$(BIN)/python -m pytest --full tests/faults; outcome=$$?; $(BIN)/python tools/found.py; exit $$outcome

docs: setup ## Write the generated pages of docs/reference anew
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/checklists.py

schema: setup ## Write store/schema.sql anew from the migrations
	$(BIN)/python tools/schema.py

# Name a folder of pictures to compare with: make shots REFERENCE=folder
shots: setup-dev ## Take pictures of every page, beside those of a folder, into build/shots
	$(BIN)/python -m tools.shots $(if $(REFERENCE),--reference $(REFERENCE))

measures: ## Print the figures of how the code reads
	@for python in $(BIN)/python $(PYTHON) python3; do \
	  if command -v $$python >/dev/null 2>&1; then exec $$python -m tools.measures src/countersign --tests tests; fi; done

# Releases younger than a week stay out. dev.txt is run.txt and more, so that both hold the same versions.
LOCK := uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --no-header --exclude-newer "7 days"
lock: ## Write the locks in requirements/ anew (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv on PATH (pip install uv)" >&2; exit 1; }
	$(LOCK) pyproject.toml requirements/run.in requirements/dev.in --output-file requirements/dev.txt
	$(LOCK) pyproject.toml requirements/run.in --constraints requirements/dev.txt --output-file requirements/run.txt
	$(LOCK) requirements/node.in --constraints requirements/dev.txt --output-file requirements/node.txt

clean: ## Remove .venv and every cache; data/ stays
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist \
	  frontend/node_modules frontend/generated src/countersign/web/static
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Folders too: removing a file changes only its folder.
SOURCES := $(shell find src -name __pycache__ -prune -o \( -type d -o -name '*.py' \) -print 2>/dev/null)
$(VENV)/.types: $(VENV)/.dev pyproject.toml $(SOURCES)
	$(BIN)/basedpyright --project pyproject.toml --pythonpath $(BIN)/python --level error
	@touch $@

# Made last in each step: an interrupted installation is begun again.
$(VENV)/.python:
	@python=""; \
	for each in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	  if "$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python=$$each; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "Countersign needs Python 3.11 or newer; $(or $(PYTHON),python3) is older or missing." >&2; \
	  echo "Install it (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python3)" >&2; \
	  echo "or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	  echo "$$python cannot make virtual environments (no ensurepip)." >&2; \
	  echo "Debian, Ubuntu: apt install python3-venv, then run make again." >&2; exit 1; \
	fi; \
	rm -rf $(VENV) && "$$python" -m venv $(VENV)
	@touch $@

# A lock names all packages. Where pip looks for dependencies itself, a release newer than the lock can end it: it reads
# `name[extra]` as another package, which the lock does not pin.
$(VENV)/.run: $(VENV)/.python requirements/run.txt pyproject.toml
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/run.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/dev.txt
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get install --yes --no-install-recommends chromium; } \
	  >/dev/null 2>&1 || echo "No Chromium here: tests of pages will be skipped (Debian: apt install chromium)."
	@touch $@
