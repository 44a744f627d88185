"""What cannot run on this machine is named at the end of a run, and nothing is skipped in silence."""

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
LACKING = {"POSTROOM_TEST_PATH": "/nowhere"}
NEED_SWAKS = "tests/smtp/test_peers.py::test_swaks_sends_a_mail"
LINE = "left out: 6 tests need swaks (apt-get install swaks)"


def test_a_run_in_several_processes_names_the_programs_that_it_lacks() -> None:
    """That one in a single process does is seen by test_own_home.py, which has such a run."""
    arguments = ["-q", "--processes", "1", NEED_SWAKS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=CHECKOUT,
        env=os.environ | LACKING,
        capture_output=True,
        text=True,
        timeout=300,
    )
    check_what_was_left_out(done)


def check_what_was_left_out(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.stdout.splitlines().count(LINE) == 1, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_no_test_is_skipped() -> None:
    forms = ("pytest.skip", "mark.skip", "pytest.xfail", "mark.xfail", "importorskip")
    others = [path for path in Path(__file__).parent.rglob("*.py") if path != Path(__file__)]
    assert [path for path in others if any(form in path.read_text() for form in forms)] == []
