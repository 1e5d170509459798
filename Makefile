# Everything sets itself up: on a fresh machine `make demo` and `make test` need only make and Python 3.11+.

VENV := .venv
BIN := $(VENV)/bin
CHECK := 'import sys; sys.exit(sys.version_info < (3, 11))'
# The first Python on the PATH that is new enough; `make PYTHON=/path/to/python3 ...` overrides it.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c $(CHECK) 2>/dev/null && echo $$p && break; done)
PIP := $(BIN)/python -m pip install --quiet --quiet --constraint constraints.txt
# Dependency groups need pip 25.1; Python 3.11 to 3.13 come with older ones.
NEWER_PIP := 'pip>=25.1'
JOBS ?= 2

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Tests and commands start many processes. Without bytecode on disk each of them would compile all of turnlog anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup test test-fast test-clients test-frameworks lint format docs site demo bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## install turnlog and everything its tests need into .venv

test: $(VENV)/.dev ## run the tests (JOBS=N in parallel; ARGS="..." for pytest)
	@$(BIN)/python -m pytest -n $(JOBS) -m "not clients and not frameworks" $(ARGS)

test-fast: $(VENV)/.dev ## run a few cases of each test that takes under half a second: one to two minutes
	@TURNLOG_EXAMPLES=fast $(BIN)/python -m pytest -q -n $(JOBS) -m "not clients and not frameworks and not slow" --ignore=tests/test_house.py $(ARGS)

test-clients: $(VENV)/.dev ## run the tests with real SDK clients, agent programs, servers and browsers
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m clients $(ARGS)

test-frameworks: $(VENV)/.dev ## run programs of agent frameworks, each in an environment of its own
	@$(BIN)/python -m pytest -q -n $(JOBS) -m frameworks tests/frameworks $(ARGS)

lint: $(VENV)/.dev ## check style, types, imports between rooms, and the documentation
	@$(BIN)/ruff check --no-cache --quiet --output-format concise
	@$(BIN)/ruff format --check --quiet --output-format concise || { echo "layout differs: run make format" >&2; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest -q tests/test_house.py tests/test_docs.py tests/test_format.py

format: $(VENV)/.dev ## lay the code out and mend what ruff can mend
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format --quiet

docs: $(VENV)/.dev ## run every example of README.md and docs/
	@$(BIN)/python -m pytest -q tests/test_docs.py tests/test_format.py

site: $(VENV)/.docs ## build the documentation as a web site into site/, and check its links
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean

demo: $(VENV)/.runtime ## show what turnlog does, on a conversation it makes up
	@$(BIN)/turnlog demo

bench: $(VENV)/.dev ## run the benches that take seconds; ARGS="NAME..." for others (bench/run.py list)
	@$(BIN)/python bench/run.py $(or $(ARGS),quick)

clean: ## remove .venv and everything generated
	@rm -rf $(VENV) .venv-frameworks build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { echo "turnlog needs Python 3.11 or newer; none found. Install one, or: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c $(CHECK) || { echo "turnlog needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" -V 2>&1)" >&2; exit 1; }
	@echo "setting up $(VENV) ..."
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); echo "no virtual environment could be made; on Debian and Ubuntu install python3-venv" >&2; exit 1; }

# Stamps: a second run installs nothing unless the requirements changed.
$(VENV)/.runtime: $(BIN)/python pyproject.toml constraints.txt
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	@$(PIP) $(NEWER_PIP)
	@$(PIP) --editable '.[all]' --group dev
	@touch $(VENV)/.runtime $@

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	@$(PIP) $(NEWER_PIP)
	@$(PIP) --editable . --group docs
	@touch $(VENV)/.runtime $@
