"""The service on this machine: its user, its systemd unit, and how its commands run as that user."""

import os
import pwd
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from postroom.config import SETTINGS_FILE
from postroom.host_setup.settings_file import replace_file

SYSTEMD = Path("/run/systemd/system")  # exists where systemd is the init system
UNITS = Path("/etc/systemd/system")  # a unit elsewhere is only written
UNIT_TEMPLATE = Path(__file__).with_name("postroom.service")
STATE_FOLDERS = Path("/var/lib")
HIDDEN = ("/home/", "/root/", "/run/user/")  # by ProtectHome
UNIT_MODE = 0o644
CAPABILITIES = "-all,+net_bind_service"
COMMAND_SECONDS = 120


class SetupFailed(Exception):
    """A step that nothing can follow; the text is for people."""


class Service(Struct, frozen=True):
    """`user` is "" where setup is no root: then everything runs as the user who runs setup."""

    user: str
    settings: Path | None
    data_dir: Path
    unit: Path | None
    program: str  # the command `postroom`

    @property
    def is_by_systemd(self) -> bool:
        return self.unit is not None and self.unit.parent == UNITS and SYSTEMD.is_dir()

    def group(self) -> int | None:
        return pwd.getpwnam(self.user).pw_gid if self.user else None

    def make_user(self) -> bool:
        """Return True if the system user had to be made."""
        try:
            pwd.getpwnam(self.user)
            return False
        except KeyError:
            home, shell = str(self.data_dir), "/usr/sbin/nologin"
            _run("useradd", "--system", "--user-group", "--home-dir", home, "--shell", shell, self.user)
            return True

    def make_data_folder(self) -> None:
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.user:
            entry = pwd.getpwnam(self.user)
            os.chown(self.data_dir, entry.pw_uid, entry.pw_gid)

    def write_unit(self) -> bool:
        """Return True if the unit changed."""
        text = unit_text(self)
        if self.unit is None or (self.unit.exists() and self.unit.read_text() == text):
            return False
        replace_file(self.unit, text, UNIT_MODE)
        return True

    def command(self, *arguments: str) -> list[str]:
        """Return a command line of Postroom as the service runs it: its user, and ports below 1024."""
        own = [sys.executable, "-m", "postroom", *arguments]
        if not self.user:
            return own
        entry = pwd.getpwnam(self.user)
        allowed = [f"--{kind}={CAPABILITIES}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
        ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        return ["setpriv", *ids, *allowed, "--no-new-privs", "--", *own]

    def command_line(self, *arguments: str) -> str:
        """Return the same for a shell, with what it needs around it."""
        settings = f"{SETTINGS_FILE}={self.settings}"
        return shlex.join(["env", settings, f"HOME={self.data_dir}", *self.command(*arguments)])

    def environment(self, around: Mapping[str, str]) -> dict[str, str]:
        """Return what a command of the service gets: as root no more than systemd would give it."""
        settings = {} if self.settings is None else {SETTINGS_FILE: str(self.settings)}
        if not self.user:
            return {**around, **settings}
        passed = {name: around[name] for name in ("PATH", "LANG", "SSL_CERT_FILE") if name in around}
        return {**passed, "HOME": str(self.data_dir), "PYTHONDONTWRITEBYTECODE": "1", **settings}

    def run(self, *arguments: str) -> str:
        """Return what a command of Postroom prints. Raises SetupFailed with its error."""
        return _run(*self.command(*arguments), environment=self.environment(os.environ))

    def start_by_systemd(self, has_changed: bool) -> None:
        assert self.unit is not None
        _run("systemctl", "daemon-reload")
        _run("systemctl", "enable", "--now", self.unit.name)
        if has_changed:
            _run("systemctl", "restart", self.unit.name)


def unit_text(service: Service) -> str:
    """Return the unit of `deploy/postroom.service` with this machine's paths."""
    settings, data = str(service.settings), str(service.data_dir)
    own = f"StateDirectory={service.data_dir.name}\nStateDirectoryMode=0700"
    if service.data_dir.parent != STATE_FOLDERS:
        own = f"ReadWritePaths={data}"
    text = UNIT_TEMPLATE.read_text()
    for name, value in (
        ("{user}", service.user),
        ("{settings}", settings),
        ("{data}", data),
        ("{state}", own),
        ("{program}", service.program),
    ):
        text = text.replace(name, value)
    return text


def is_hidden(program: str) -> bool:
    """Return True if the service could not see the program: its unit closes the homes of people."""
    return program.startswith(HIDDEN)


def _run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(  # noqa: S603 (every argument is ours)
            command, env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupFailed(f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        raise SetupFailed(f"`{' '.join(command[-3:])}` failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout
