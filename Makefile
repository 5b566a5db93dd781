# Everything runs in a virtual environment of its own: `make try` and `make test` need nothing but Python, git and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# `make lock` writes the versions that everyone develops with; test-oldest and test-newest use others.
CONSTRAINTS ?= dev.lock
# Two for each processor: half of its time a test waits for another process. It does not wait for the disk where its
# folders can lie in memory.
WORKERS := $(shell expr `getconf _NPROCESSORS_ONLN` '*' 2)
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4194304 { print "TMPDIR=/dev/shm" }')

# The tests' own modules take 15 seconds to compile: they are compiled once, and not by each worker in each run.
unexport PYTHONDONTWRITEBYTECODE
COMPILED := $(VENV)/.compiled

.PHONY: help try test test-again test-client test-client-again test-crash test-oldest test-newest lock fuzz check package bench schemas anchors format clean

help:
	@echo "make try          import, lose, restore and fork example conversations in a temporary folder"
	@echo "make test         all tests except those with the real client"
	@echo "make test-again   those that failed once more, one after the other (test-client-again: with the real client)"
	@echo "make test-client  the tests with the real client (npm installs it into a cache folder)"
	@echo "make test-oldest  make test with the oldest dependencies that pyproject.toml allows"
	@echo "make test-newest  make test with the newest ones"
	@echo "make lock         write dev.lock: the versions of dependencies that make installs"
	@echo "make fuzz         100,000 hostile inputs, 400 random histories, and 2,000 examples of every law"
	@echo "make test-crash   thousands of kills, I/O faults and races (make test has a few of each)"
	@echo "make check        ruff, mypy and the layers test"
	@echo "make package      build the wheel and the sdist, and try each in a new environment"
	@echo "make bench        measure speed and size (GROUP=import: one group, QUICK=1: fewer runs)"
	@echo "make schemas      write docs/schemas/ from the code"
	@echo "make anchors      write the table of the redaction rules, with their prefilter"
	@echo "make format       format the code, and apply safe fixes of ruff"

$(READY): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "sessgit needs Python 3.11 or later: make PYTHON=python3.12 …"; exit 1; }
	@command -v git >/dev/null || { echo "sessgit needs git 2.30 or later"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable . --group dev
	@touch $@

try:
	@$(PYTHON) -m venv .venv-try
	@.venv-try/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) .
	@.venv-try/bin/python examples/try.py

$(COMPILED): $(READY) $(wildcard tests/test_*.py tests/crash/test_*.py)
	@printf '%s\n' $(filter tests/%,$?) | xargs -n 90 -P 3 $(BIN)/python -m pytest --collect-only -q >/dev/null || true
	@touch $@

test: $(READY) $(COMPILED)
	$(MEMORY) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=15

test-again: $(READY)
	$(MEMORY) $(BIN)/python -m pytest --last-failed --last-failed-no-failures none -v

test-client: $(READY)
	SESSGIT_TEST_CLIENT=1 $(BIN)/python -m pytest tests/client -n $(WORKERS) --dist loadgroup

test-client-again: $(READY)
	SESSGIT_TEST_CLIENT=1 $(BIN)/python -m pytest tests/client --last-failed --last-failed-no-failures none -v

test-crash: $(READY)
	SESSGIT_TEST_CRASH=long $(BIN)/python -m pytest tests/crash -n auto --ignore tests/crash/test_crowds.py
	SESSGIT_TEST_CRASH=long $(BIN)/python -m pytest tests/crash/test_crowds.py -s

test-oldest:
	sed -n '/^dependencies/,/^]/s/^    "\([A-Za-z0-9_-]*\)>=\([0-9.]*\).*/\1==\2/p' pyproject.toml > .oldest.txt
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=.oldest.txt

test-newest:
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=/dev/null

lock:
	rm -rf .venv-newest
	$(MAKE) .venv-newest/.ready VENV=.venv-newest CONSTRAINTS=/dev/null
	.venv-newest/bin/python -m pip freeze --exclude-editable > dev.lock

fuzz: $(READY)
	SESSGIT_TEST_FUZZ=100000 SESSGIT_TEST_WALKS=200 $(BIN)/python -m pytest tests/test_fuzz.py tests/test_terminal.py \
		tests/test_hostile_*.py tests/test_walks.py -n auto --dist worksteal
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -m hypothesis -n auto --dist worksteal
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet atheris || true
	$(BIN)/python tests/guided.py 30000
	$(BIN)/python tests/blame_histories.py 200

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

package: $(READY)
	$(BIN)/python tests/packages.py

bench: $(READY)
	@$(BIN)/python bench/suite.py $(GROUP) $(if $(QUICK),--quick) $(if $(WRITE),--write $(WRITE)) \
		$(if $(TRANSCRIPTS),--transcripts $(TRANSCRIPTS))

schemas: $(READY)
	SESSGIT_TEST_WRITE_SCHEMAS=1 $(BIN)/python -m pytest -q tests/test_schemas.py tests/test_json_docs.py

anchors: $(READY)
	cd tests && ../$(BIN)/python -c 'import anchoring; anchoring.engine.TABLE.write_text(anchoring.table(), "utf-8")'

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv* .oldest.txt .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist
