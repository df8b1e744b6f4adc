# Two commands are enough: `make serve` and `make test`. Everything else is for those who change the code.

# The distribution's Python is built with profile-guided optimization, those that version managers
# build mostly are not: the server answers a fifth more requests a second on it.
PYTHON ?= $(shell for python in /usr/bin/python3 python3; do $$python -c \
          'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
          done; echo $$python)
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 8000
HEALTH ?= 9464
MODEL  ?= artifacts/bigram
DATA   ?=

.DEFAULT_GOAL := help
.PHONY: help setup serve test check tools docs bench soak mutants clean

help:  ## what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Each stamp is made anew when what it depends on has changed, so that a second run starts at once.
$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,test]'
	@touch $@

setup: $(VENV)/installed  ## .venv with the commands tl-serve, tinyllm and wire

ifneq ($(DATA),)
# A text of one's own gets a model of its own, named after it.
MODEL := artifacts/$(basename $(notdir $(firstword $(DATA))))
endif

$(MODEL)/model.safetensors: $(DATA) | $(VENV)/installed
	$(BIN)/tinyllm train bigram $(if $(DATA),--data $(DATA)) --out $(MODEL)

serve: setup $(MODEL)/model.safetensors  ## train on real text if there is no model, then serve (DATA=book.txt PORT=8001)
	@exec $(BIN)/tl-serve --model-dir $(MODEL) --port $(PORT) --health-port $(HEALTH)

test: $(VENV)/installed-test check  ## everything: lint, types, the whole suite
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

check: $(VENV)/installed-test  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Real clients and a real proxy, which are not Python's to install.
NODE  := tests/clients/node
TOOLS  = $(if $(shell command -v curl),,curl) $(if $(shell command -v npm),,nodejs npm) \
         $(if $(shell PATH=$$PATH:/usr/sbin command -v nginx),,nginx-light) \
         $(if $(shell command -v openssl),,openssl)

$(NODE)/node_modules/installed: $(NODE)/package.json
	npm install --prefix $(NODE) --no-package-lock --no-audit --no-fund --silent
	@touch $@

tools:  ## the programs beside Python that the suite runs (Debian: curl, node, nginx, openssl)
	@if [ -n "$(strip $(TOOLS))" ]; then apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(TOOLS); fi
	@$(MAKE) --no-print-directory $(NODE)/node_modules/installed

docs: $(VENV)/installed-test  ## write the generated documents anew
	$(BIN)/python -m tools.generate_docs

bench: $(VENV)/installed-test  ## five minutes: the server beside its anchors
	$(BIN)/python -m benchmarks.bench_serving --out benchmarks/results

soak: $(VENV)/installed-test  ## ten minutes of mixed load; fails if memory grows
	$(BIN)/python -m benchmarks.soak

mutants: $(VENV)/installed-test  ## each pitfall of the specification, and the test that catches it
	$(BIN)/python -m tests.mutants.table

clean:  ## forget .venv and the trained models
	rm -rf $(VENV) artifacts
