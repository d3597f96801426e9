# Everything runs in .venv, which make builds by itself: Python 3.11 or newer is all it needs.
PYTHON ?= python3
RUN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help up test check format docs kube kube-old cue prometheus record e2e e2e-long hostile bench bench-quick lock clean

help: ## show what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

up: .venv/ready ## start the control plane on 127.0.0.1:6450 and its page, with example platforms, data in .polyver
	@$(RUN)/polyver up --data .polyver --capabilities apis,functions,definitions,compositions \
		--functions examples/functions/backup_functions/__init__.py \
		--catalogue examples/functions/backup_functions/catalogue.yaml \
		--packages examples/rollout/packages.yaml \
		--load examples/platform --load examples/many-versions --load examples/rollout/stable \
		--load examples/websites/start

# Tests start hundreds of processes: what one compiles is kept for the next, whatever is set here.
test: .venv/ready ## run all tests
	@PYTHONDONTWRITEBYTECODE= $(RUN)/pytest -n auto

check: .venv/ready ## check format, lint, types, imports, names, and that docs are up to date
	@$(RUN)/ruff format --check .
	@$(RUN)/ruff check .
	@$(RUN)/mypy
	@$(RUN)/lint-imports --no-logo
	@$(RUN)/python tools/check_names.py
	@$(RUN)/python docs/generate.py --check

format: .venv/ready ## format the code and fix what the linter can
	@$(RUN)/ruff format .
	@$(RUN)/ruff check --fix .

docs: .venv/ready ## write the generated pages, and those with figures of measurements
	@$(RUN)/python docs/generate.py

kube: .venv/ready ## build a real kube-apiserver, its controllers, etcd and kubectl (needs Go or PyPI)
	@$(RUN)/python tests/kube/build.py

kube-old: .venv/ready ## build the oldest kubectl that is served, for the walks (needs Go or PyPI)
	@$(RUN)/python tests/kube/build.py old

cue: .venv/ready ## build cue, for the tests of templates that are written in it (needs Go or PyPI)
	@$(RUN)/python tests/kube/build.py cue

prometheus: .venv/ready ## download Prometheus, for the tests of rollouts that ask it (needs apt-get)
	@$(RUN)/python -m tests.rollouts.prometheus

record: kube ## ask the real API server and Go's libraries again what the tests compare with
	@$(RUN)/python tests/peers/record.py
	@$(RUN)/python -m tests.peers.kubeobjects.record
	@$(RUN)/python tests/peers/cel/record.py
	@$(RUN)/python -m tests.peers.templates.record
	@$(RUN)/python -m tests.peers.conversions.record
	@cd tests/peers && go run ./durations > new.json && mv new.json recorded_durations.json
	@$(RUN)/python -m tests.kube.facts
	@$(RUN)/python -m tests.kube.record
	@$(RUN)/python -m tests.kube.tables
	@$(RUN)/python -m tests.kube.schemas
	@$(RUN)/python -m tests.kube.applies
	@$(RUN)/python -m tests.kube.builtins
	@$(RUN)/python -m tests.kube.server.openapi_facts

e2e: kube ## run the tests that need the real API server, cue or Prometheus
	@$(RUN)/python tests/kube/build.py cue || echo "======== NOT TESTED WITH CUE ========" >&2
	@$(RUN)/python -m tests.rollouts.prometheus || echo "======== NOT TESTED WITH PROMETHEUS ========" >&2
	@$(RUN)/pytest -n 4 -m "kube or cue or prometheus" --hypothesis-seed=0 $(ARGS)

# Other kinds and objects than last time: what this finds is a difference that nobody knew of.
e2e-long: kube ## compare with the real API server on new kinds and objects, and roll out to 1,000
	@POLYVER_GENERATED_TIMES=20 $(RUN)/pytest -n 2 -m kube tests/kube/test_generated.py $(ARGS)
	@POLYVER_FOLLOWERS=1000 $(RUN)/pytest -n 2 --dist loadfile -m "kube or not kube" \
		tests/rollouts/test_many*.py $(ARGS)

hostile: .venv/ready ## send hostile requests at full size, and print how long others wait (10 minutes)
	@$(RUN)/python -m tests.hostile $(ARGS)

bench: .venv/ready ## measure everything beside peers that it builds, and print one table (needs Go; 15 minutes)
	@$(RUN)/python -m bench $(ARGS)

bench-quick: .venv/ready ## measure what needs no peers, in a minute
	@$(RUN)/python -m bench --quick $(ARGS)

lock: .venv/ready ## pin the newest versions of all dependencies, with hashes
	@$(COMPILE) pyproject.toml -o requirements/runtime.txt
	@$(COMPILE) pyproject.toml requirements/dev.in -o requirements/dev.txt
	@$(COMPILE) requirements/uv.in -o requirements/uv.txt

COMPILE = $(RUN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --no-header

clean: ## remove the environment and all caches
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist

# pip brings uv, uv brings the rest; where uv does not reach an index that pip is set up for, pip does.
INSTALL = $(RUN)/uv pip install --quiet --system-certs --python $(RUN)/python
.venv/ready: pyproject.toml requirements/uv.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "polyver needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@echo "Preparing .venv …" >&2
	@$(PYTHON) -m venv --clear .venv || \
		{ echo "Python's venv module is missing; on Debian: apt install python3-venv" >&2; exit 1; }
	@$(RUN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(INSTALL) --require-hashes -r requirements/dev.txt || \
		$(RUN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@$(RUN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
