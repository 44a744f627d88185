#!/bin/sh
# Compiles pyproject.toml into requirements/*.txt: every version and hash, no addresses.
set -eu
cd "$(dirname "$0")/.."
compile() { .tools/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
    --no-emit-package postroom-client --no-emit-package postroom-mail "$@"; }
compile pyproject.toml --group build --output-file requirements/server.txt "$@"
compile pyproject.toml --group build --group dev --constraint requirements/server.txt --output-file requirements/dev.txt "$@"
# agentmail-to has the module of agentmail, in an older form; nobody here needs it.
compile requirements/frameworks.in --no-emit-package agentmail-to --output-file requirements/frameworks.txt "$@"
compile requirements/docs.in --output-file requirements/docs.txt "$@"
