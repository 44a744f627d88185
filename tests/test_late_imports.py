"""What few need is loaded by whoever needs it, not by every start of the server."""

import subprocess
import sys

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
