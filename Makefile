# Every target does its own set-up: a virtual environment in .venv, from constraints.txt.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := build/tools
FUZZ_SECONDS ?= 60

.PHONY: setup demo check test test-all bench packaged golden fuzz audit web clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -c constraints.txt torch
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	touch $(STAMP)

demo: setup                       ## train on built-in phrases in about two minutes, translate, score
	$(BIN)/clearhead demo

check: setup                      ## style, types, architecture, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/contracts

test: setup                       ## everything but the slow tests; offline; a few minutes
	$(BIN)/pytest

test-all: setup                   ## the slow ones too
	$(BIN)/pytest -m "slow or not slow"

bench: setup                      ## side by side with the peers, in one run
	$(BIN)/python bench/run.py

packaged: setup                   ## train the model in the package again, from the same recipe
	$(BIN)/python bench/package_model.py

golden: setup                     ## take the golden losses again; the changelog must say why they changed
	OMP_NUM_THREADS=1 $(BIN)/python tests/train/golden_losses.py

# The page's sources need Node 20.19 or newer; users of the package do not: the built page is committed.
WEB_STAMP := web/node_modules/.installed

$(WEB_STAMP): web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	touch $(WEB_STAMP)

web: $(WEB_STAMP)                 ## check, test and build the page into src/clearhead/explore/static
	cd web && npm run -s check && npm run -s unit && npm run -s build

fuzz: setup                       ## coverage-guided fuzzing of every loader, FUZZ_SECONDS each; says so where it cannot
	@test -d $(TOOLS)/fuzz/atheris || $(BIN)/python -m pip install -q --no-deps --target $(TOOLS)/fuzz 'atheris>=3.0' || true
	PYTHONPATH=$(TOOLS)/fuzz $(BIN)/python tests/faults/fuzz_loaders.py all --seconds $(FUZZ_SECONDS)

audit: setup                      ## known holes in the pinned packages; says so where they cannot be looked up
	@test -x $(TOOLS)/audit/bin/python || $(PYTHON) -m venv $(TOOLS)/audit
	@$(TOOLS)/audit/bin/python -m pip install -q 'pip-audit>=2.7' || true
	$(TOOLS)/audit/bin/python tests/contracts/audit.py constraints.txt

clean:
	rm -rf $(VENV) clearhead-demo clearhead-demo-quick build dist
