# On a fresh machine (Python 3.11, make, gcc): `make train` or `make test`. Everything lands in .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help train test test-browser fuzz mutants lint bench docs dist clean

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

train: $(VENV)/core              ## install, then train a defender for about three minutes
	$(BIN)/phalanx train

test: $(VENV)/test               ## install, then run all tests
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test-browser: $(VENV)/test       ## run the tests of pages, and insist on a browser
	PHALANX_BROWSER=1 $(BIN)/python -m pytest -m browser

fuzz: $(VENV)/test               ## play 8,000 damaged and hostile files (half an hour)
	$(BIN)/python -m tests.fuzz

mutants: $(VENV)/test            ## change single tokens, and list the changes that no test notices
	$(BIN)/python -m tests.mutants

lint: $(VENV)/lint               ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/core              ## measure the simulator
	$(BIN)/phalanx bench sim

docs: $(VENV)/docs               ## build the site into build/site, and check its links
	$(BIN)/python -m docsite

dist: $(VENV)/dist               ## build sdist and wheel, and try the wheel in an empty environment
	rm -rf dist
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build
	.ci/try_wheel

clean:           ## remove everything that was installed or cached here
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build

$(VENV)/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

# torch comes first and alone: nothing that depends on it may choose another build.
$(VENV)/torch: constraints.txt $(VENV)/core
	$(PIP) torch
	@touch $@

$(VENV)/test: $(VENV)/torch
	$(PIP) -e ".[test]"
	@touch $@

$(VENV)/lint: $(VENV)/test
	$(PIP) -e ".[test,lint]"
	@touch $@

$(VENV)/docs: $(VENV)/test
	$(PIP) -e ".[test,docs]"
	@touch $@

$(VENV)/dist: $(VENV)/core
	$(PIP) -e ".[dist]"
	@touch $@
