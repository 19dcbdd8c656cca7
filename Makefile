# Every target creates the virtual environment that it needs, and later calls reuse it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := src tests benchmarks examples docs
INSTALL = PYTHON='$(PYTHON)' sh scripts/install.sh
INSIDE = PATH="$(CURDIR)/$(BIN):$$PATH"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo serve test test-fast test-costs check fix docs messages bench bench-load bench-server bench-packs bench-scale bench-stats bench-rl rl faults clean

help:  ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.demo  ## Run a small benchmark and show the result
	@$(INSIDE) sh examples/demo.sh

serve: $(VENV)/.demo  ## Open the dashboard with the results of the demo
	@test -e demo/assay.toml || { echo 'There is nothing to show yet. Run: make demo' >&2; exit 2; }
	@cd demo && $(INSIDE) assay serve

# Reading all tests writes their bytecode, on a processor that the checks leave idle; else each test process would compile them all.
# In CI the packages of the backend trl are fetched meanwhile; its tests wait for the same lock.
test: $(VENV)/.dev  ## Run all checks and all tests
	@if [ -n "$$CI" ]; then flock $(VENV)-rl.lock $(MAKE) --no-print-directory rl >/dev/null 2>&1 & fi; \
	$(INSIDE) sh scripts/test.sh --collect-only -qq >/dev/null & \
	$(MAKE) --no-print-directory check; checked=$$?; wait $$!; exit $$checked
	@$(INSIDE) sh scripts/test.sh

test-fast: $(VENV)/.dev  ## Run the quick tests (two minutes): no servers, browser or processes
	@$(INSIDE) sh scripts/test.sh --processes 2 --fast

test-costs: $(VENV)/.dev  ## Time all tests and write tests/slow_tests.txt and tests/file_costs.txt
	@$(INSIDE) sh scripts/test.sh --write-costs

check: $(VENV)/.dev  ## Check style, types, layers and generated pages, without running anything
	@$(BIN)/ruff check $(wildcard $(SOURCES))
	@$(BIN)/ruff format --check $(wildcard $(SOURCES))
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check_names.py
	@$(INSIDE) python docs/generate.py --check

fix: $(VENV)/.dev  ## Apply automatic fixes and formatting
	@$(BIN)/ruff check --fix $(wildcard $(SOURCES))
	@$(BIN)/ruff format $(wildcard $(SOURCES))

docs: $(VENV)/.dev  ## Generate the reference pages from the code
	@$(INSIDE) python docs/generate.py

messages: $(VENV)/.dev  ## Regenerate tests/messages.txt, the wording that tests compare
	@$(INSIDE) sh scripts/test.sh --write-messages

bench: $(VENV)/.bench  ## Check the overhead of Assay against its targets
	@$(INSIDE) python benchmarks/run.py

bench-load: $(VENV)/.bench  ## Check the load engine against its targets and other load generators
	@$(INSIDE) PYTHONPATH=benchmarks python -m load.run

bench-server: $(VENV)/.dev $(VENV)/.bench  ## Check the server against its targets with a million executions
	@$(INSIDE) PYTHONPATH=benchmarks python -m server.run

bench-packs: $(VENV)/.dev $(VENV)/.bench  ## Run the built-in experiments at full size; check the simulated world against its targets
	@$(INSIDE) PYTHONPATH=benchmarks python -m packs.run

bench-scale: $(VENV)/.dev $(VENV)/.bench  ## Check PostgreSQL with ten million executions, copies and clusters against their targets
	@$(INSIDE) PYTHONPATH=benchmarks python -m scale.run

bench-stats: $(VENV)/.dev  ## Check the error rates of the statistics by simulation
	@$(INSIDE) PYTHONPATH=benchmarks python -m stats.run

rl: $(VENV)-rl/.rl  ## Install torch and TRL in .venv-rl, for the tests of the backend trl and bench-rl (1.5 GB)

bench-rl: $(VENV)/.bench $(VENV)-rl/.rl  ## Check the native training against its targets and TRL
	@$(INSIDE) PYTHONPATH=benchmarks python -m rl.run

faults: $(VENV)/.dev  ## Inject faults and count what goes wrong (QUICK=1: five minutes; SEED=N)
	@$(INSIDE) PYTHONPATH=benchmarks python -m faults.run --seed $(or $(SEED),1) --size $(if $(QUICK),quick,full)

clean:  ## Remove the virtual environments and tool caches
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
