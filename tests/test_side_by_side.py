"""A run in several processes tells what a run in one would, and goes on when one of them dies."""

import os
import subprocess
import sys
from pathlib import Path

from tests.side_by_side import BROWSERS

CHECKOUT = Path(__file__).parents[1]
MODULES = {
    "test_sound.py": """
        import os, warnings
        def test_one(tmp_path): (tmp_path / "one").touch()
        def test_two(tmp_path): assert os.listdir(tmp_path) == []
        def test_told():
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                warnings.warn("look here")
    """,
    "test_failing.py": """
        import os
        def test_three():
            print("printed by the failing one")
            os.write(1, b"written by the failing one")
            assert "left" == "right"
        def test_four(): print("printed by the sound one")
    """,
    "test_dying.py": """
        import os, pathlib, pytest, time
        @pytest.mark.parametrize("number", range(6))
        def test_five(number):
            if number == 2:
                while not pathlib.Path(__file__).with_name("told").exists(): time.sleep(0.01)
                os._exit(77)
    """,
    "conftest.py": """
        import os, pathlib
        FIRST = os.getpid()
        def pytest_warning_recorded():
            if os.getpid() == FIRST: pathlib.Path(__file__).with_name("told").touch()
    """,
}
IN_A_BROWSER = """
        import os, pathlib, pytest
        @pytest.mark.needs("chromium")
        def test_shown(): pathlib.Path(__file__).with_name(f"shown-{os.getpid()}").touch()
"""
STUBBORN = """
import signal
def test_six():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pause()
"""


def run_tests(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    browsers = {f"test_browser_{number}.py": IN_A_BROWSER for number in range(3)}
    for name, source in {**MODULES, **browsers}.items():
        (folder / name).write_text("\n".join(line[8:] for line in source.splitlines()))
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\nmarkers = needs\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", f"{folder}/pytest.ini", "-p", "tests.side_by_side"]
    return subprocess.run(
        [*command, "--processes", "3", *arguments, folder],
        cwd=CHECKOUT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_every_result_output_and_warning_is_told(tmp_path: Path) -> None:
    done = run_tests(tmp_path)
    assert "2 failed, 12 passed, 1 warning" in done.stdout, done.stdout + done.stderr
    assert "assert 'left' == 'right'" in done.stdout
    assert "look here" in done.stdout
    assert done.stdout.count("by the failing one") == 2 + 2  # in the source of the test, and in its output
    assert "printed by the sound one" not in done.stdout
    assert "ended with exit code 77" in done.stdout
    assert done.returncode == 1
    assert len(list(tmp_path.glob("shown-*"))) == BROWSERS


def test_a_run_stops_at_the_first_failure_whatever_other_tests_do_with_signals(tmp_path: Path) -> None:
    (tmp_path / "test_stubborn.py").write_text(STUBBORN)
    done = run_tests(tmp_path, "-x", "-k", "failing or stubborn")
    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert "stopping after 1 failures" in done.stdout
