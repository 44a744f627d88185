"""MTA-STS (RFC 8461): the policy by which a domain asks for TLS to its mail servers."""

import hashlib
from collections.abc import Sequence

MAX_AGE_SECONDS = 7 * 24 * 3600
MODES = ("none", "testing", "enforce")


def write_policy(mode: str, hosts: Sequence[str], max_age_seconds: int = MAX_AGE_SECONDS) -> str:
    lines = ["version: STSv1", f"mode: {mode}", *(f"mx: {host}" for host in hosts)]
    return "".join(f"{line}\r\n" for line in [*lines, f"max_age: {max_age_seconds}"])


def policy_id(policy: str) -> str:
    """Changes with the policy, so that senders fetch it anew (section 3.1)."""
    return hashlib.sha256(policy.encode()).hexdigest()[:20]


def write_record(policy: str) -> str:
    return f"v=STSv1; id={policy_id(policy)};"
