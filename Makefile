# Every target is a verb. `make` alone lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# Test processes: most of a test's time is compilers starting and loading, on one core.
JOBS ?= 2
# Of `make follow`, a third of whose time on two processes is waiting.
FOLLOW_JOBS ?= 3

.DEFAULT_GOAL := help
.PHONY: help install demo check test follow conformance fuzz faults docs grade lint format describe clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml constraints.txt requirements-classic.txt scripts/install-torch
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python scripts/install-torch
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable '.[models,onnx,tflite,dev,browser,cpp,cross-compile,gpu,teach,notebooks]'
	$(BIN)/python -m pip install --quiet --no-deps -r requirements-classic.txt
	@touch $@

install: $(VENV)/.installed ## Make the virtual environment and install everything into it

demo: install ## Run the whole course and export a real model with the reference solutions
	$(BIN)/python -m tvm_practice.main --solutions $(ARGS)

check: lint ## Check the code between two edits: lint, and the tests that start no process
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "not pages and not slow" \
	    --without-processes -r fE $(ARGS)

test: install ## Run the tests (ARGS="-m phase2", "-k tile", …)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not pages" $(ARGS)

follow: install ## Run the longer tests: every command of the pages, large models, further seeds
	$(BIN)/python -m pytest -n $(FOLLOW_JOBS) --dist worksteal -m pages $(ARGS)

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable '.[docs]'
	@touch $@

$(VENV)/.timm: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-deps timm
	@touch $@

conformance: $(VENV)/.timm ## Try the exporter on what others wrote (KIND=operators, ARGS="--samples 2", …)
	$(BIN)/python -m conformance $(or $(KIND),operators onnx transformers timm compile) --dtype all --page $(ARGS)

fuzz: install ## Hold random models against PyTorch (MINUTES=30, SEED=…, ARGS="--mode tiles", …)
	$(BIN)/python -m fuzz --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(ARGS)

faults: install ## Put hundreds of faults into runs (strace), and check what must hold (ARGS="export --faults 20", …)
	$(BIN)/python -m tests.faults --page $(ARGS)

docs: $(VENV)/.docs ## Build the documentation as a site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

grade: install ## Grade your own functions only
	$(BIN)/python -m pytest tests/test_course.py -k test_mine $(ARGS)

lint: install ## Check style, types, prose and which package imports which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python -m tests.docs.prose

format: install ## Rewrite the files in the project's style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

describe: install ## Say which TVMs are here and what they can do
	$(BIN)/python -m tvm_practice.engines

clean: ## Remove the virtual environment, runs and caches
	rm -rf $(VENV) runs site build *.egg-info .pytest_cache .mypy_cache .ruff_cache
