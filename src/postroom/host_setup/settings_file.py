"""The settings file of a mail host: what setup writes, and the lines of the operator that it keeps."""

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from postroom.config import SETTINGS, SETTINGS_FILE, ConfigError, read_settings_file

HEADER = "# Settings of Postroom, written by `postroom setup`. Lines that you change or add are kept."
PLAIN = re.compile(r"[!#-&(-\[\]-~]*")  # needs no quotes, for systemd as for us
QUOTABLE = re.compile(r"[ !#-\[\]-~]*")
EVERY_IPV4 = "0.0.0.0"  # noqa: S104
EVERYWHERE = "[::]"  # takes IPv4 too
FILE_MODE = 0o640  # it holds secrets, and its group is the service's


class Host(Struct, frozen=True):
    """What setup was given about the host."""

    name: str
    owner: str  # email address
    data_dir: str
    acme: str = "on"
    dns: str = ""
    dns_token: str = ""
    relay: str = ""  # POSTROOM_OUTBOUND; "" sends directly
    has_ipv6: bool = False


def settings_of(host: Host) -> dict[str, str]:
    """Return the settings of a host on the internet, without those that this version does not know."""
    has_certificate = host.acme != "off"
    everywhere = EVERYWHERE if host.has_ipv6 else EVERY_IPV4
    wanted = {
        "POSTROOM_DATA_DIR": host.data_dir,
        "POSTROOM_DOMAIN": host.name,
        "POSTROOM_BASE_URL": f"https://{host.name}",
        "POSTROOM_HTTP": f"{everywhere}:443" if has_certificate else "127.0.0.1:8025",
        "POSTROOM_SMTP": f"{everywhere}:25",
        "POSTROOM_IMAP": f"{everywhere}:993",
        "POSTROOM_SUBMISSION": f"{everywhere}:465,{everywhere}:587",
        "POSTROOM_ACME": host.acme,
        "POSTROOM_ACME_EMAIL": host.owner,
        "POSTROOM_ACME_HTTP": f"{everywhere}:80" if has_certificate else "off",
        "POSTROOM_OUTBOUND": host.relay or "mx",
        "POSTROOM_DNS": host.dns,
        "POSTROOM_DNS_TOKEN": host.dns_token,
        "POSTROOM_JUNK": "folder",
        "POSTROOM_DMARC": "junk",
    }
    known = {setting.name for setting in SETTINGS}
    return {name: value for name, value in wanted.items() if value and name in known}


def merge(
    wanted: Mapping[str, str], there: Mapping[str, str], given: Mapping[str, str], around: Mapping[str, str]
) -> dict[str, str]:
    """Return all lines of the file: what was given now, before what is there, before what setup proposes.

    What the environment sets already is left to it.
    """
    proposed = {name: value for name, value in wanted.items() if not around.get(name)}
    return {**proposed, **there, **given}


def find_settings_path(environment: Mapping[str, str], is_root: bool) -> Path | None:
    """Return where the settings are kept; None: in the environment alone, as in Kubernetes."""
    if given := environment.get(SETTINGS_FILE):
        return Path(given.removeprefix("-"))
    return Path("/etc/postroom.env") if is_root else None


def read(path: Path) -> dict[str, str]:
    return read_settings_file(f"-{path}")


def write(path: Path, settings: Mapping[str, str], group: int | None) -> bool:
    """Return True if the file changed. Comments and the order of its lines are kept."""
    old = path.read_text().splitlines() if path.exists() else [HEADER]
    left, lines = dict(settings), []
    for line in old:
        name = line.partition("=")[0].strip()
        lines.append(_line(name, left.pop(name)) if name in left else line)
    lines += [_line(name, value) for name, value in left.items()]
    if path.exists() and lines == old:
        return False
    replace_file(path, "\n".join([*lines, ""]), FILE_MODE, group)
    return True


def replace_file(path: Path, content: str, mode: int, group: int | None = None) -> None:
    """Replace a file in one step: a reader never sees half of it, nor anyone a secret."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as opened:
        opened.write(content)
        opened.flush()
        if group is not None:
            os.fchown(descriptor, -1, group)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    temporary.replace(path)


def _line(name: str, value: str) -> str:
    if PLAIN.fullmatch(value):
        return f"{name}={value}"
    if not QUOTABLE.fullmatch(value):
        raise ConfigError(name, "must not contain quotes, backslashes or line breaks")
    return f'{name}="{value}"'
