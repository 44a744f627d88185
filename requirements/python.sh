#!/bin/sh
# Prints the Python for .venv: PYTHON if it is set; else the first on the PATH that was built with optimisation,
# and python3 if there is none.
set -eu
cd "$(dirname "$0")/.."
[ -z "${PYTHON:-}" ] || { echo "$PYTHON"; exit; }
IFS=:
for folder in $PATH; do
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        [ -x "$folder/$name" ] || continue
        "$folder/$name" src/postroom/processes/interpreter.py >/dev/null 2>&1 || continue
        echo "$folder/$name"
        exit
    done
done
echo python3
