"""What SECURITY.md says is tested, is."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| (\d+) \|.*\| ([^|]+) \|$", re.MULTILINE)
DEFINED = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def test_every_row_names_tests_that_are_there() -> None:
    rows = dict(ROW.findall((ROOT / "SECURITY.md").read_text()))
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in DEFINED.findall(path.read_text())
    }
    assert [int(number) for number in rows] == list(range(1, 22))
    for number, tests in rows.items():
        named = re.findall(r"`([^`]+)`", tests)
        assert named, number
        for name in named:
            assert name in defined or (name.startswith("tests/") and (ROOT / name).exists()), name
