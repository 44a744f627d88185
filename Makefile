# Everything a checkout needs, from a bare machine: python3 (3.11 or newer) with pip, and make.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := .tools/bin/uv
export UV_SYSTEM_CERTS := 1
export UV_PYTHON_DOWNLOADS := never
export UV_NO_CONFIG := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start a thousand processes: without compiled files each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-long soak setup generate check bench docs screenshots tour release publish lock clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 13

run: $(VENV)/.server  ## Set up and start Postroom on SQLite and local files
	@exec $(BIN)/postroom serve

test: $(VENV)/.dev  ## Set up, start the real engines and run every test
	@$(BIN)/python -m pytest --processes auto $(PYTEST_ARGS)

test-long: $(VENV)/.dev  ## Run every test with every sample, and invent more of them
	@POSTROOM_TEST_SHARE=all POSTROOM_TEST_CASES=$(or $(CASES),200) $(BIN)/python -m pytest --processes auto $(PYTEST_ARGS)

soak: $(VENV)/.dev  ## Faults and load for as long as you like: SEEDS=0:1000 KILLS=100 HOSTILE=1000 MINUTES=60
	@$(BIN)/python -m tests.simulation $(subst :, ,$(or $(SEEDS),0:1000))
	@POSTROOM_TEST_KILLS=$(or $(KILLS),100) POSTROOM_TEST_SENDS=1000 POSTROOM_TEST_HOLD_KILLS=$(or $(KILLS),100) \
		POSTROOM_TEST_NODE_KILLS=$(or $(KILLS),100) POSTROOM_TEST_TORN_DISKS=2000 \
		POSTROOM_TEST_SYNC_KILLS=$(or $(KILLS),100) POSTROOM_TEST_SYNCED_MAILS=2000 \
		$(BIN)/python -m pytest --processes 2 -q -o faulthandler_timeout=0 tests/power_loss tests/storage/test_postgres_failover.py tests/nodes \
		tests/imap/test_mail_clients.py tests/imap/test_kills.py \
		$(foreach kind,kill mail_kill send_kill hold_kill search_kill stream_resume,tests/end_to_end/test_$(kind).py)
	@$(BIN)/python -m tests.mixed_kills $(or $(KILLS),100)
	@POSTROOM_TEST_HOSTILE=$(or $(HOSTILE),1000) POSTROOM_TEST_HOSTILE_SENDS=$(or $(HOSTILE),1000) \
		$(BIN)/python -m pytest --processes 2 -q tests/adversary
	@$(BIN)/python -m tests.soak $(or $(MINUTES),60) soak.svg

setup: $(VENV)/.dev  ## Set up the server and the development tools

generate: $(VENV)/.dev  ## Make the clients and the reference anew from the description of the interface
	@$(BIN)/python -m tests.reference_examples
	@$(BIN)/python -m tools.generate

check: $(VENV)/.dev  ## Format, lint and type check
	$(BIN)/ruff format --check src tests tools bench examples
	$(BIN)/ruff check src tests tools bench examples
	$(BIN)/mypy

bench: $(VENV)/.dev  ## Measure this checkout and its peers side by side
	@$(BIN)/python -m bench $(BENCH_ARGS)

screenshots: $(VENV)/.dev  ## Take pictures of the pages into docs/images (needs chromium)
	@$(BIN)/python -m tests.browser.screenshots $(PAGES)

tour: $(VENV)/.dev  ## Make the 60-second tour for the documentation site from pictures of the pages (needs chromium)
	@$(BIN)/python -m tests.browser.tour

docs: .tools/docs/.complete docs/images/tour-light.svg  ## Build the documentation site into site (links are checked)
	@NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs build --quiet --strict

docs/images/tour-light.svg:
	@$(MAKE) --no-print-directory tour >/dev/null 2>&1 || echo "postroom docs: the site has no tour: make tour says why" >&2

release: $(VENV)/.server  ## Build wheels, archives, bill of materials and checksums into dist, the same bytes twice
	@$(BIN)/python -m tools.release

publish: $(UV)  ## Publish what is in dist: the owner's step, with UV_PUBLISH_TOKEN and after npm login
	cd dist && sha256sum --check --quiet SHA256SUMS
	$(UV) publish dist/postroom_mail-* dist/postroom_client-*
	$(UV) publish dist/postroom-[0-9]*
	npm publish ./dist/postroom-client-*.tgz --access public

lock: $(UV)  ## Compile the hashed requirements anew (LOCK_ARGS=--upgrade for newer versions)
	@sh requirements/lock.sh $(LOCK_ARGS)

clean:  ## Remove what setup made (never the data folder)
	rm -rf $(VENV) .tools postroom

$(VENV)/.server: requirements/server.txt pyproject.toml src/postroom_client/pyproject.toml src/postroom_mail/pyproject.toml requirements/install.sh
	@sh requirements/install.sh server
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.server
	@sh requirements/install.sh dev
	@touch $@

.tools/docs/.complete: requirements/docs.txt
	@sh requirements/install.sh docs
	@touch $@

$(UV):
	@sh requirements/install.sh uv
