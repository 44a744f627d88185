"""What few need is loaded by whoever needs it, not by every start of the server."""

import subprocess
import sys

# Passkeys, and single sign-on: most servers start without either.
LATE = {"webauthn", "joserfc", "cbor2", "asn1crypto", "OpenSSL"}
# What a process may never need: it neither signs nor verifies before there is mail to sign or verify.
NEVER = {"cryptography", "prometheus_client", "mcp", "opentelemetry", "pydantic"}
# Each is loaded with the first file of its kind.
READERS = {
    "postroom_mail.files.attached_email",
    "postroom_mail.files.office",
    "postroom_mail.files.old_office.outlook",
    "postroom_mail.files.pdf.pages",
    "postroom_mail.files.pictures.preview",
    "postroom_mail.html.page",
    "postroom_mail.reading.calendar",
}
PROGRAM = f"""
import importlib, pkgutil, sys
def loaded(names): return sorted(set(names) & set(sys.modules))

from postroom_mail.files import child
from postroom_mail.files.extract import extract
assert extract("text/plain", "a.txt", b"hello").text == "hello"
print("by a reader of files", *loaded({READERS}))
import postroom.workers.worker
print("by a worker", *loaded({NEVER}))
import postroom_client.cli
print("by the command", *loaded({NEVER}))
import postroom, postroom.assembly
print("by the server", *loaded({NEVER}))
for module in pkgutil.walk_packages(postroom.__path__, "postroom."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert "postroom.operations.people.passkeys" in sys.modules
assert "postroom.web.oauth.openid" in sys.modules
print("by any module", *loaded({LATE}))
"""
NOTHING = """by a reader of files
by a worker
by the command
by the server
by any module
"""


def test_nothing_starts_with_what_it_may_never_need_or_only_for_signing_in() -> None:
    """One after the other in one process: what was not loaded by all of them was not loaded by any."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, NOTHING), done.stderr
