"""MTA-STS (RFC 8461): the policy by which a domain asks for TLS to its mail servers."""

import hashlib
import re
from collections.abc import Sequence

from msgspec import Struct

from postroom_mail.authentication.tags import readable_tags

MAX_AGE_SECONDS = 7 * 24 * 3600
LONGEST_AGE_SECONDS = 31_557_600  # section 3.2
MODES = ("none", "testing", "enforce")
ENFORCE = "enforce"
POLICY_BYTES = 64 * 1024  # section 3.3
HOSTS = 500
_IDENTITY = re.compile(r"[A-Za-z0-9]{1,32}")  # section 3.1
_HOST = re.compile(r"(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63}){0,30}")


class StsPolicy(Struct, frozen=True):
    mode: str
    hosts: tuple[str, ...]
    max_age_seconds: int

    def allows(self, host: str) -> bool:
        """Return whether the policy names this host. A star matches one label, the leftmost (section 4.1)."""
        name = host.lower().rstrip(".")
        above = name.partition(".")[2]
        return name in self.hosts or (bool(above) and f"*.{above}" in self.hosts)


def read_policy(raw: bytes) -> StsPolicy | None:
    """Return None for an invalid policy (section 3.2); unknown fields are ignored."""
    if len(raw) > POLICY_BYTES:
        return None
    fields: dict[str, str] = {}
    hosts: list[str] = []
    for line in raw.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == "mx":
            hosts.append(value.strip().lower().rstrip("."))
        elif colon:
            fields.setdefault(name.strip(), value.strip())
    age, mode = fields.get("max_age", ""), fields.get("mode", "")
    is_valid = fields.get("version") == "STSv1" and mode in MODES and re.fullmatch(r"[0-9]{1,10}", age)
    if not is_valid or len(hosts) > HOSTS or not all(map(_HOST.fullmatch, hosts)):
        return None
    if mode != "none" and not hosts:
        return None
    return StsPolicy(mode, tuple(hosts), min(int(age), LONGEST_AGE_SECONDS))


def read_identity(texts: Sequence[bytes]) -> str | None:
    """Return the id of the only valid record; several or none mean that there is no policy (section 3.1)."""
    found = [text for text in texts if text.startswith(b"v=STSv1")]
    tags = readable_tags(found[0]) if len(found) == 1 else {}
    identity = tags.get("id", "")
    return identity if tags.get("v") == "STSv1" and _IDENTITY.fullmatch(identity) else None


def write_policy(mode: str, hosts: Sequence[str], max_age_seconds: int = MAX_AGE_SECONDS) -> str:
    lines = ["version: STSv1", f"mode: {mode}", *(f"mx: {host}" for host in hosts)]
    return "".join(f"{line}\r\n" for line in [*lines, f"max_age: {max_age_seconds}"])


def policy_id(policy: str) -> str:
    """Changes with the policy, so that senders fetch it again (section 3.1)."""
    return hashlib.sha256(policy.encode()).hexdigest()[:20]


def write_record(policy: str) -> str:
    return f"v=STSv1; id={policy_id(policy)};"
