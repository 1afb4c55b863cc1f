# Two commands on a fresh machine: `make demo` and `make test`. Each sets up everything it needs in .venv,
# from python 3.11 or newer, git and make alone.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
READY := .venv/.ready
MINUTES := 10
CODE := src tests domains harness_versions docs benchmarks

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export DVC_NO_ANALYTICS := 1

.PHONY: help setup demo test test-slow fuzz format lint types imports docs-check tests docs lock clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(READY)  ## make .venv with the exact versions of requirements.lock

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "tracemark needs python 3.11 or newer; set PYTHON=/path/to/python" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing the exact versions of requirements.lock into .venv (once; a minute or two)"
	@$(BIN)/python -m pip install --quiet --use-pep517 --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)

demo: $(READY)  ## run the example pipeline and show what it did
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/demo.py

test: $(READY) format lint types imports docs-check tests  ## everything that CI checks

format: $(READY)
	$(BIN)/ruff format --check $(CODE)

lint: $(READY)
	$(BIN)/ruff check $(CODE)

types: $(READY)
	$(BIN)/mypy src domains docs benchmarks

imports: $(READY)
	$(BIN)/lint-imports --no-cache

docs-check: $(READY)
	$(BIN)/python docs/generate.py --check

tests: $(READY)
	$(BIN)/pytest --quiet --numprocesses 2 --dist worksteal

test-slow: $(READY)  ## the slow tests alone
	$(BIN)/pytest --quiet --numprocesses 2 --dist worksteal -m slow

fuzz: $(READY)  ## read damaged traces until MINUTES=10 are over; FUZZ="--format tau2 --keep" for its options
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(FUZZ)

docs: $(READY)  ## write the generated pages anew
	$(BIN)/python docs/generate.py

lock: $(READY)  ## resolve requirements.lock anew
	uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras --group dev --generate-hashes \
		--no-emit-index-url --no-header --quiet --output-file requirements.lock

clean:  ## remove what can be made again
	rm -rf .venv .tracemark .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
