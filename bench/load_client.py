"""Runs a load client in a process of its own, so that the server is what is measured.

python -m bench.load_client MODULE: the load on stdin, the report on stdout.
"""

import importlib
import subprocess
import sys

from bench.processes import CHECKOUT


def run(module: str, load: bytes) -> bytes:
    """Starts the process and waits for its report."""
    command = [sys.executable, "-m", "bench.load_client", module]
    return subprocess.run(command, cwd=CHECKOUT, input=load, stdout=subprocess.PIPE, check=True).stdout


def apply(module: str, load: bytes) -> bytes:
    report: bytes = importlib.import_module(module).apply(load)
    return report


if __name__ == "__main__":
    sys.stdout.buffer.write(apply(sys.argv[1], sys.stdin.buffer.read()))
