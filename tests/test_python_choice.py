"""`make setup` takes an optimized Python where there are several."""

import subprocess
from pathlib import Path

import pytest

CHOICE = Path(__file__).parents[1] / "requirements" / "python.sh"
SUITED, PLAIN = "#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n"


def choose(folder: Path, pythons: dict[str, str], **environment: str) -> str:
    for name, text in pythons.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    path = ":".join(str(folder / name) for name in ("first", "second", "missing"))
    done = subprocess.run(
        ["/bin/sh", str(CHOICE)],
        env={"PATH": f"{path}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ({"first/python3": SUITED, "second/python3": SUITED}, "first/python3"),
        ({"first/python3": PLAIN, "second/python3": SUITED}, "second/python3"),
        ({"first/python3": PLAIN, "first/python3.12": SUITED, "second/python3": SUITED}, "first/python3.12"),
    ],
)
def test_the_first_optimized_one_on_the_path(tmp_path: Path, pythons: dict[str, str], chosen: str) -> None:
    assert choose(tmp_path, pythons) == str(tmp_path / chosen)


def test_the_one_that_is_asked_for(tmp_path: Path) -> None:
    assert choose(tmp_path, {"first/python3": SUITED}, PYTHON="python3.13") == "python3.13"
