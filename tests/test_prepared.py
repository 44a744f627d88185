"""What is made before the workers start is what they look for."""

from pathlib import Path

import pytest

from tests import prepared


def test_a_module_is_rewritten_once_until_its_source_changes(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    module = tmp_path / "test_one.py"
    module.write_text("def test_one():\n    assert 1\n")
    assert not prepared.is_rewritten(module)
    prepared.work(pytestconfig, [module], [])
    assert prepared.is_rewritten(module)
    module.write_text("def test_two():\n    assert 2\n")
    assert not prepared.is_rewritten(module)


def test_what_pytest_rewrote_for_this_process_is_known() -> None:
    assert prepared.is_rewritten(Path(__file__))


def test_a_module_that_is_no_python_is_left_to_the_worker_that_imports_it(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    broken, sound = tmp_path / "test_broken.py", tmp_path / "test_sound.py"
    broken.write_text("def test_(:\n")
    sound.write_text("def test_one():\n    assert 1\n")
    prepared.work(pytestconfig, [broken, sound], [])
    assert not prepared.is_rewritten(broken)
    assert prepared.is_rewritten(sound)
