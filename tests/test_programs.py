"""What cannot run on this machine is named at the end of a run, and nothing is skipped in silence."""

import subprocess
from pathlib import Path

LACKING = {"POSTROOM_TEST_PATH": "/nowhere"}
NEED_SWAKS = "tests/smtp/test_peers.py::test_swaks_sends_a_mail"
LINE = "left out: 6 tests need swaks (apt-get install swaks)"


def check_what_was_left_out(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.stdout.splitlines().count(LINE) == 1, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_no_test_is_skipped() -> None:
    forms = ("pytest.skip", "mark.skip", "pytest.xfail", "mark.xfail", "importorskip")
    others = [path for path in Path(__file__).parent.rglob("*.py") if path != Path(__file__)]
    assert [path for path in others if any(form in path.read_text() for form in forms)] == []
