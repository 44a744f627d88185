"""The files of a run are in memory where that can hold them."""

from pathlib import Path

import pytest

from tests import memory_folder


def test_a_folder_with_room_is_chosen_and_a_missing_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(memory_folder.SETTING, raising=False)
    monkeypatch.setattr(memory_folder, "ROOM_BYTES", 1)
    assert memory_folder.choose(tmp_path) == str(tmp_path)
    assert memory_folder.choose(tmp_path / "missing") is None
    monkeypatch.setattr(memory_folder, "ROOM_BYTES", 1 << 62)
    assert memory_folder.choose(tmp_path) is None


def test_the_setting_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory_folder.SETTING, str(tmp_path))
    assert memory_folder.choose() == str(tmp_path)
