# `make demo` and `make test` are all that a newcomer needs. Each makes .venv and fetches the default model the first
# time, which needs a network; from then on both run without one.
#
#   PYTHON=python3.12 make test        another interpreter, 3.11 to 3.13
#   make test PIP_ARGS="..."           pip's own options, such as an index for a CPU-only torch
#   make test PYTEST_ARGS="-k name"    pytest's own options
#   make gpu-check GPU_PYTHON=python3  on a machine whose own Python has torch for its GPU: nothing is installed
#   make gpu-check GPU_CHECK_ARGS="--only sweep"   the check's own options

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
PIP_ARGS ?=
PYTEST_ARGS ?=
GPU_PYTHON ?=
GPU_CHECK_ARGS ?=
WORKERS ?= 2
MODEL := smollm2-135m

VENV := .venv
PY := $(VENV)/bin/python

# The stamp's name is a checksum of what an installation depends on, the folder included: a checkout that merely touches
# a file installs nothing, a changed file or a moved tree does.
STAMP := $(VENV)/installed-$(shell { cat pyproject.toml constraints.txt; pwd -P; } | cksum | cut -d' ' -f1)

# A PYTHON given by hand replaces a .venv that was made with another version.
ifneq ($(origin PYTHON),file)
  minor = $(shell $(1) -c 'import sys; print(sys.version_info[:2])' 2>/dev/null)
  ifneq ($(call minor,$(PYTHON)),$(call minor,$(PY)))
    CLEAR := yes
    .PHONY: $(STAMP)
  endif
endif

# One thread a worker: two workers with a pool of threads each would fight over the cores.
PYTEST := OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --dist loadfile

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | while IFS=$$'\t' read -r name what; do \
		printf '  make %-12s %s\n' "$$name" "$$what"; done

.PHONY: demo
demo: model ## start the engine, ramp clients through the threshold, compare speculation off, on and auto
	$(VENV)/bin/specwb demo

.PHONY: test
test: model ## all checks: format, lint, types, import contracts, tests
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(PYTEST) $(PYTEST_ARGS)

.PHONY: check-fast
check-fast: $(STAMP) ## the inner loop: lint, types, tests not marked slow
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PYTEST) -m 'not slow' $(PYTEST_ARGS)

# Needs neither textual nor starlette, so that a GPU machine's own Python will do.
.PHONY: gpu-check
gpu-check: $(if $(GPU_PYTHON),,model) ## on a machine with a CUDA GPU: its tests, the floor, the sweep; goes on where it was cut
	$(or $(GPU_PYTHON),$(PY)) -m engine.gpu_check $(GPU_CHECK_ARGS)

.PHONY: fmt
fmt: $(STAMP) ## format the code, and fix what lint can fix
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

.PHONY: install
install: model ## make .venv and fetch the default model, as demo and test do by themselves

.PHONY: clean
clean: ## remove .venv, caches and build output (the model stays in its cache)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Looks first and fetches only what is missing.
.PHONY: model
model: $(STAMP)
	@$(PY) -m engine.models fetch $(MODEL)

$(STAMP):
	@bash scripts/install.sh "$(PYTHON)" $(VENV) "$(CLEAR)" $(PIP_ARGS)
	@rm -f $(VENV)/installed-*
	@touch $@
