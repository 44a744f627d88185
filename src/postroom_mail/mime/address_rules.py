"""Rules about addresses: an address, a domain, or the names below a domain; and which of them one meets."""

import re

from postroom_mail.mime.address import base_of, normalize, split, validate

BELOW = "*."
# RFC 1035 section 2.3.4 for the lengths; an underscore is seen in names that email comes from.
_DOMAIN = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
MAX_LABELS = 127


def read(value: str) -> str:
    """Return a rule in the form that is compared; ValueError says what is wrong with it."""
    trimmed = value.strip()
    if trimmed.count("@") == 1:
        trimmed = trimmed.removeprefix("@")  # @example.com is often written for the whole domain
    if "@" in trimmed:
        return normalize(validate(trimmed.removesuffix(".")))
    below = BELOW if trimmed.startswith(BELOW) else ""
    domain = split(normalize(f"x@{trimmed.removeprefix(BELOW)}"))[1]
    if not _DOMAIN.fullmatch(domain):
        raise ValueError(
            "Give an address, a domain such as example.com, or *.example.com for names below it."
        )
    return below + domain


def met_by(address: str) -> list[str]:
    """Return every rule that can match an address: itself, without a tag, its domain, and those above it."""
    normal = normalize(address)
    domain = split(normal)[1]
    labels = domain.split(".")[-MAX_LABELS:]
    above = [BELOW + ".".join(labels[place:]) for place in range(1, len(labels))]
    return list(dict.fromkeys((normal, base_of(normal), domain, *above)))
