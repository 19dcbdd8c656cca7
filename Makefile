# Every target makes the virtual environment that it needs; a second call reuses it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := src tests benchmarks examples docs
INSTALL = PYTHON='$(PYTHON)' sh scripts/install.sh
INSIDE = PATH="$(CURDIR)/$(BIN):$$PATH"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo serve test test-fast test-costs check fix docs messages bench bench-load bench-server bench-packs bench-stats bench-rl rl faults clean

help:  ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.demo  ## Measure something small and show the result
	@$(INSIDE) sh examples/demo.sh

serve: $(VENV)/.demo  ## Open the dashboard on the results of the demo
	@test -e demo/assay.toml || { echo 'There is nothing to show yet: make demo' >&2; exit 2; }
	@cd demo && $(INSIDE) assay serve

# Reading all tests writes their bytecode, on a processor that the checks leave idle; else each test process would compile them all.
test: $(VENV)/.dev  ## Check, then run every test
	@$(INSIDE) sh scripts/test.sh -n 0 --collect-only -qq >/dev/null & \
	$(MAKE) --no-print-directory check; checked=$$?; wait; exit $$checked
	@$(INSIDE) sh scripts/test.sh

test-fast: $(VENV)/.dev  ## Run the quick tests: no servers, no browser, no processes (two minutes)
	@$(INSIDE) sh scripts/test.sh -n 2 --fast

test-costs: $(VENV)/.dev  ## Run every test and write tests/slow_tests.txt, the tests that test-fast leaves out
	@$(INSIDE) sh scripts/test.sh --write-costs

check: $(VENV)/.dev  ## Look for faults without running: style, types, layers, generated pages
	@$(BIN)/ruff check $(wildcard $(SOURCES))
	@$(BIN)/ruff format --check $(wildcard $(SOURCES))
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check_names.py
	@$(INSIDE) python docs/generate.py --check

fix: $(VENV)/.dev  ## Repair what can be repaired automatically
	@$(BIN)/ruff check --fix $(wildcard $(SOURCES))
	@$(BIN)/ruff format $(wildcard $(SOURCES))

docs: $(VENV)/.dev  ## Write the reference pages from the code
	@$(INSIDE) python docs/generate.py

messages: $(VENV)/.dev  ## Write tests/messages.txt, the wording that tests compare, from what the tests read
	@$(INSIDE) sh scripts/test.sh --write-messages

bench: $(VENV)/.bench  ## Measure Assay itself against its promises
	@$(INSIDE) python benchmarks/run.py

bench-load: $(VENV)/.bench  ## Hold the load engine against its promises, beside other load generators
	@$(INSIDE) PYTHONPATH=benchmarks python -m load.run

bench-server: $(VENV)/.bench  ## Hold the server against its promises with a million executions
	@$(INSIDE) PYTHONPATH=benchmarks python -m server.run

bench-packs: $(VENV)/.bench  ## Run the shipped experiments at full size, and hold the simulated world against its promises
	@$(INSIDE) PYTHONPATH=benchmarks python -m packs.run

bench-stats: $(VENV)/.dev  ## Hold the statistics against their promises by simulation
	@$(INSIDE) PYTHONPATH=benchmarks python -m stats.run

rl: $(VENV)-rl/.rl  ## Install torch and TRL in .venv-rl, for the tests of the backend trl and bench-rl (1.5 GB)

bench-rl: $(VENV)/.bench $(VENV)-rl/.rl  ## Hold the native training against its promises, beside TRL
	@$(INSIDE) PYTHONPATH=benchmarks python -m rl.run

faults: $(VENV)/.dev  ## Break everything on purpose and count what goes wrong (QUICK=1: five minutes; SEED=N)
	@$(INSIDE) PYTHONPATH=benchmarks python -m faults.run --seed $(or $(SEED),1) --size $(if $(QUICK),quick,full)

clean:  ## Remove the virtual environments and what tools left
	@rm -rf $(VENV) $(VENV)-rl demo build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	@find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.demo: pyproject.toml constraints.txt scripts/install.sh
	@$(INSTALL) demo

$(VENV)/.dev: pyproject.toml constraints.txt scripts/install.sh
	@$(INSTALL) dev

$(VENV)/.bench: pyproject.toml constraints.txt scripts/install.sh
	@$(INSTALL) bench

$(VENV)-rl/.rl: pyproject.toml constraints.txt scripts/install.sh
	@$(INSTALL) rl
