"""What few need is loaded by whoever needs it, not by every start of the server."""

import subprocess
import sys

import pytest

# Passkeys, and single sign-on: most servers start without either.
LATE = {"webauthn", "joserfc", "cbor2", "asn1crypto", "OpenSSL"}
PROGRAM = f"""
import importlib, pkgutil, sys
import postroom
for module in pkgutil.walk_packages(postroom.__path__, "postroom."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert "postroom.operations.people.passkeys" in sys.modules
assert "postroom.web.oauth.openid" in sys.modules
print(*sorted({LATE} & set(sys.modules)))
"""


def test_no_module_of_the_server_loads_what_only_signing_in_needs() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.parametrize("process", ["postroom.assembly", "postroom.workers.worker"])
def test_a_process_starts_without_what_it_may_never_need(process: str) -> None:
    """Neither signs or verifies before there is mail to sign or verify, and a worker never does."""
    program = (
        f"import sys, {process}; print(*sorted({{'cryptography', 'prometheus_client'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
