"""Installs the bridge as a service of the user: a systemd unit on Linux, a launchd agent on macOS."""

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from postroom_client.bridge.files import BridgeFault, require_safe_name

KEPT_SETTINGS = ("XDG_CONFIG_HOME",)  # where the profiles are
COMMAND_TIMEOUT_SECONDS = 60


class Supervisor(Protocol):
    """What starts the bridge again after a crash and a reboot."""

    @property
    def path(self) -> Path: ...

    def install(self) -> None: ...

    def uninstall(self) -> None: ...

    def state(self) -> str:
        """Return what the system itself says of the service."""


def supervisor(profile: str, platform: str = sys.platform) -> Supervisor:
    require_safe_name(profile)
    if platform == "darwin":
        return Launchd(profile)
    if platform.startswith("linux"):
        return Systemd(profile)
    raise BridgeFault(
        "There is no installer for this system. Start `postroom bridge run` with your own service manager."
    )


def bridge_command(profile: str) -> list[str]:
    return [sys.executable, "-m", "postroom_client", "bridge", "run", "--profile", profile]


def kept_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in KEPT_SETTINGS if name in environment}


@dataclass(frozen=True, slots=True)
class Systemd:
    profile: str

    @property
    def unit(self) -> str:
        return f"postroom-bridge-{self.profile}.service"

    @property
    def path(self) -> Path:
        home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return Path(home) / "systemd" / "user" / self.unit

    def install(self) -> None:
        text = unit_text(self.profile, bridge_command(self.profile), kept_environment(os.environ))
        write(self.path, text.encode())
        run("systemctl", "--user", "daemon-reload")
        run("systemctl", "--user", "enable", self.unit)
        run("systemctl", "--user", "restart", self.unit)

    def uninstall(self) -> None:
        run("systemctl", "--user", "disable", "--now", self.unit)
        self.path.unlink()
        run("systemctl", "--user", "daemon-reload")

    def state(self) -> str:
        shown = ask(
            "systemctl", "--user", "show", "--property=LoadState,ActiveState,UnitFileState", self.unit
        )
        found = dict(line.partition("=")[::2] for line in shown.splitlines())
        if found.get("LoadState") != "loaded":
            return "not loaded"
        return f"{found.get('ActiveState') or 'unknown'}, {found.get('UnitFileState') or 'unknown'}"


@dataclass(frozen=True, slots=True)
class Launchd:
    profile: str

    @property
    def label(self) -> str:
        return f"postroom.bridge.{self.profile}"

    @property
    def path(self) -> Path:
        return Path.home() / "Library" / "LaunchAgents" / f"{self.label}.plist"

    def install(self) -> None:
        if self.path.exists():
            self.uninstall()
        log = Path.home() / "Library" / "Logs" / f"{self.label}.log"
        write(self.path, agent_plist(self.label, bridge_command(self.profile), log, os.environ))
        run("launchctl", "bootstrap", f"gui/{os.getuid()}", str(self.path))

    def uninstall(self) -> None:
        run("launchctl", "bootout", f"gui/{os.getuid()}/{self.label}")
        self.path.unlink()

    def state(self) -> str:
        shown = ask("launchctl", "print", f"gui/{os.getuid()}/{self.label}")
        states = [
            line.partition("=")[2].strip()
            for line in shown.splitlines()
            if line.strip().startswith("state =")
        ]
        return states[0] if states else "not loaded"


def unit_text(profile: str, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Exit status 2 and 4 are a wrong setting and a refused key: a restart would not help."""
    kept = [f"Environment={quoted(f'{name}={value}')}" for name, value in environment.items()]
    return "\n".join(
        [
            "[Unit]",
            f"Description=Postroom bridge ({profile})",
            "",
            "[Service]",
            f"ExecStart={' '.join(quoted(word) for word in command)}",
            *kept,
            "Restart=always",
            "RestartSec=5",
            "RestartPreventExitStatus=2 4",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


def quoted(word: str) -> str:
    """Escape quotes, specifiers and variables: systemd.syntax(7) and systemd.service(5)."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def agent_plist(label: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> bytes:
    return plistlib.dumps(
        {
            "Label": label,
            "ProgramArguments": list(command),
            "EnvironmentVariables": kept_environment(environment),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 5,
            "StandardErrorPath": str(log),
        }
    )


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def run(program: str, *arguments: str) -> None:
    done = call(program, *arguments)
    if done.returncode != 0:
        raise BridgeFault(f"{program} {' '.join(arguments)} failed: {done.stderr.strip()[:500]}")


def ask(program: str, *arguments: str) -> str:
    """Return the output of a program; empty if it fails, as for an unknown service."""
    done = call(program, *arguments)
    return done.stdout if done.returncode == 0 else ""


def call(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    found = shutil.which(program)
    if found is None:
        raise BridgeFault(
            f"There is no {program} here. Start `postroom bridge run` with your own service manager."
        )
    return subprocess.run(  # noqa: S603 (a fixed program with arguments of our delimiters)
        [found, *arguments], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_SECONDS, check=False
    )
