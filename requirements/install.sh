#!/bin/sh
# install.sh uv|server|dev|docs: puts uv into .tools, or the locked requirements and this checkout into .venv;
# what builds the documentation has .tools/docs to itself.
# uv is quicker; where it cannot run, plain pip reads the same hashed files.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
wanted=$1
export UV_SYSTEM_CERTS=1 UV_PYTHON_DOWNLOADS=never UV_NO_CONFIG=1 UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "Postroom needs Python 3.11 or newer; '$python' is not. Try: make PYTHON=python3.12 run" >&2
    exit 1
}

say() { echo "postroom setup: $*" >&2; }
have_uv() { .tools/bin/uv --version >/dev/null 2>&1; }
count() { grep -c '^[a-z]' "requirements/$wanted.txt"; }
install_uv() {
    have_uv && return
    say "fetching uv, the installer"
    "$python" -m pip install --quiet --no-warn-script-location --root-user-action=ignore \
        --require-hashes --target .tools --upgrade -r requirements/uv.txt || true
}
install_with_uv() {
    if [ ! -x .venv/bin/python ]; then
        chosen=$(sh requirements/python.sh)
        say "using $chosen ($("$chosen" --version)); to use another: make PYTHON=…"
        .tools/bin/uv venv --quiet --python "$chosen" .venv
    fi
    say "fetching $(count) packages into .venv"
    .tools/bin/uv pip install --quiet --python .venv/bin/python --require-hashes -r "requirements/$wanted.txt"
    say "installing this checkout"
    .tools/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation \
        --editable src/postroom_mail --editable src/postroom_client --editable .
}
install_with_pip() {
    say "uv cannot run here, so pip does it, which takes some minutes"
    [ -x .venv/bin/pip ] || "$python" -m venv --clear .venv
    say "fetching $(count) packages into .venv"
    .venv/bin/pip install --quiet --require-hashes -r "requirements/$wanted.txt"
    say "installing this checkout"
    for project in src/postroom_mail . src/postroom_client; do  # the client last: the command is its own
        .venv/bin/pip install --quiet --no-deps --no-build-isolation --editable "$project"
    done
}

install_docs() {
    if have_uv; then
        .tools/bin/uv venv --quiet --clear --python "$python" .tools/docs
        .tools/bin/uv pip install --quiet --python .tools/docs/bin/python --require-hashes -r requirements/docs.txt
    else
        "$python" -m venv --clear .tools/docs
        .tools/docs/bin/pip install --quiet --require-hashes -r requirements/docs.txt
    fi
}

case $wanted in
    server) say "installing the server: first time only, about half a minute" ;;
    dev) say "installing the development tools: first time only, about half a minute" ;;
    docs) say "installing what builds the documentation: first time only, about half a minute" ;;
esac
install_uv
case $wanted in
    uv) exit 0 ;;
    docs) install_docs; exit 0 ;;
esac
if have_uv; then install_with_uv; else install_with_pip; fi
say "compiling"
.venv/bin/python -m compileall -q src  # the first start need not
ln -sf .venv/bin/postroom postroom
say "done. Run ./postroom in this folder. To run postroom anywhere: export PATH=\"$PWD/.venv/bin:\$PATH\""
