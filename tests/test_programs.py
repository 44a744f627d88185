"""What cannot run on this machine is named at the end of a run, and nothing is skipped in silence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
LINE = "left out: 6 tests need swaks (apt-get install swaks)"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_names_the_programs_that_it_lacks(workers: str) -> None:
    arguments = ["-q", "--processes", workers, "tests/smtp/test_peers.py", "-k", "swaks"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=CHECKOUT,
        env=os.environ | {"POSTROOM_TEST_PATH": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.splitlines().count(LINE) == 1, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_no_test_is_skipped() -> None:
    forms = ("pytest.skip", "mark.skip", "pytest.xfail", "mark.xfail", "importorskip")
    others = [path for path in Path(__file__).parent.rglob("*.py") if path != Path(__file__)]
    assert [path for path in others if any(form in path.read_text() for form in forms)] == []
