"""What few need is loaded by whoever needs it, not by every start of the server."""

import subprocess
import sys

import pytest

# Passkeys, and single sign-on: most servers start without either.
LATE = {"webauthn", "joserfc", "cbor2", "asn1crypto", "OpenSSL"}
# What a process may never need: it neither signs nor verifies before there is mail to sign or verify.
NEVER = {"cryptography", "prometheus_client", "mcp", "pydantic"}
PROGRAM = f"""
import importlib, pkgutil, sys
import postroom, postroom.assembly
print(*sorted({NEVER} & set(sys.modules)))
for module in pkgutil.walk_packages(postroom.__path__, "postroom."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert "postroom.operations.people.passkeys" in sys.modules
assert "postroom.web.oauth.openid" in sys.modules
print(*sorted({LATE} & set(sys.modules)))
"""


def test_a_server_starts_without_what_it_may_never_need_or_only_for_signing_in() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "\n\n"), done.stderr


@pytest.mark.parametrize("module", ["postroom.workers.worker", "postroom_client.cli"])
def test_a_process_starts_without_what_it_may_never_need(module: str) -> None:
    program = f"import sys, {module}; print(*sorted({NEVER} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_a_reader_of_files_is_loaded_with_the_first_file_of_its_kind() -> None:
    late = {
        "postroom.extraction.formats.letter",
        "postroom.extraction.formats.office",
        "postroom.extraction.formats.old_office.outlook",
        "postroom.extraction.formats.pdf.pages",
        "postroom.extraction.formats.pictures.preview",
        "postroom.mail.html.page",
        "postroom.mail.meaning.calendar",
    }
    program = (
        "import sys; from postroom.extraction import child; from postroom.extraction.extract import extract\n"
        "assert extract('text/plain', 'a.txt', b'hello').text == 'hello'\n"
        f"print(*sorted({late} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
