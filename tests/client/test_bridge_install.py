"""Installing the bridge: real files, and stand-ins for systemctl and launchctl that note their calls."""

import plistlib
import stat
import sys
from pathlib import Path

import pytest

from postroom_client import profiles
from postroom_client.bridge import files, install
from postroom_client.bridge.files import BridgeFault
from postroom_client.profiles import Profile, Profiles
from tests.client.live import Shell

RECORD = """#!/bin/sh
echo "$@" >> "{log}"
cat "{log}.says" 2>/dev/null
exit {status}
"""


def stand_in(folder: Path, program: str, monkeypatch: pytest.MonkeyPatch, status: int = 0) -> Path:
    """A program that writes down how it is called."""
    folder.mkdir(exist_ok=True)
    log = folder / f"{program}.log"
    place = folder / program
    place.write_text(RECORD.format(log=log, status=status))
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return log


def test_a_systemd_unit_is_written_started_shown_and_removed(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = stand_in(tmp_path / "bin", "systemctl", monkeypatch)
    unit = shell.folder / "systemd" / "user" / "postroom-bridge-local.service"
    done = shell.json(
        "bridge", "install", "--forward-to", "http://127.0.0.1:9/hook", POSTROOM_BRIDGE_TOKEN="hush-hush"
    )
    assert done == {"installed": True, "profile": "local", "path": str(unit)}
    text = unit.read_text()
    assert f'ExecStart="{sys.executable}" "-m" "postroom_client" "bridge" "run" "--profile" "local"' in text
    assert f'Environment="XDG_CONFIG_HOME={shell.folder}"' in text
    assert "hush-hush" not in text
    report = shell.json("bridge", "status")
    assert (report["installed"], report["service"]) == (True, "not loaded")
    Path(f"{log}.says").write_text("LoadState=loaded\nActiveState=failed\nUnitFileState=enabled\n")
    assert shell.json("bridge", "status")["service"] == "failed, enabled"
    assert "failed, enabled" in shell.human("bridge", "status")
    settings = files.find_settings("local")
    assert settings is not None
    assert (settings.forward_to, settings.token) == ("http://127.0.0.1:9/hook", "hush-hush")
    assert "hush-hush" not in repr(settings)
    assert stat.S_IMODE(files.settings_path("local").stat().st_mode) == 0o600

    assert "is removed" in shell.run("bridge", "uninstall", "--no-json").output
    assert not unit.exists()
    assert files.find_settings("local") is None
    assert shell.json("bridge", "uninstall") == {"installed": False, "profile": "local"}
    assert log.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable postroom-bridge-local.service",
        "--user restart postroom-bridge-local.service",
        *[f"--user show --property=LoadState,ActiveState,UnitFileState {unit.name}"] * 3,
        "--user disable --now postroom-bridge-local.service",
        "--user daemon-reload",
    ]


def test_a_launchd_agent_is_written_loaded_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = stand_in(tmp_path / "bin", "launchctl", monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    agent = install.supervisor("work", platform="darwin")
    agent.install()
    agent.install()
    plist = plistlib.loads(agent.path.read_bytes())
    assert agent.path == tmp_path / "Library" / "LaunchAgents" / "postroom.bridge.work.plist"
    assert plist["ProgramArguments"][-2:] == ["--profile", "work"]
    assert plist["EnvironmentVariables"] == {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert plist["RunAtLoad"] is True
    assert agent.state() == "not loaded"
    Path(f"{log}.says").write_text("gui/501/postroom.bridge.work = {\n\tstate = running\n}\n")
    assert agent.state() == "running"
    agent.uninstall()
    assert not agent.path.exists()
    words = [line.split()[0] for line in log.read_text().splitlines()]
    assert words == ["bootstrap", "bootout", "bootstrap", "print", "print", "bootout"]


def test_a_machine_without_a_service_manager_says_what_to_do(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = shell.run("bridge", "install", "--command", "cat", "--no-json")
    assert result.exit_code == 1
    assert "postroom bridge run" in result.output
    with pytest.raises(BridgeFault, match="no installer"):
        install.supervisor("local", platform="win32")


def test_a_service_manager_that_fails_is_quoted(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "bin", "systemctl", monkeypatch, status=3)
    result = shell.run("bridge", "install", "--command", "cat", "--no-json")
    assert result.exit_code == 1
    assert "systemctl --user daemon-reload failed" in result.output


def test_a_service_needs_a_handler_and_a_stored_key(shell: Shell) -> None:
    assert shell.run("bridge", "install").exit_code == 2
    result = shell.run("bridge", "install", "--command", "cat", POSTROOM_API_KEY="pr_from_outside")
    assert result.exit_code == 1
    assert "postroom login" in result.output


def test_a_profile_name_cannot_leave_its_folder(shell: Shell) -> None:
    name = "../../evil"
    known = profiles.load().find("local")
    assert known is not None
    profiles.save(Profiles(name, {name: Profile(known.base_url, known.api_key)}))
    result = shell.run("bridge", "install", "--command", "cat")
    assert result.exit_code == 1
    assert "cannot be used here" in result.output


def test_words_of_a_unit_mean_themselves() -> None:
    text = install.unit_text("p", ["/opt/my tools/py", 'a"b', "50%", "$HOME", "back\\slash"], {})
    assert 'ExecStart="/opt/my tools/py" "a\\"b" "50%%" "$$HOME" "back\\\\slash"' in text
