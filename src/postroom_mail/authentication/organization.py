"""Domain names as the DNS writes them, and their organizational domain (RFC 9989 section 4.10)."""

import re
from typing import Protocol

import idna
from msgspec import Struct

from postroom_mail.authentication.tags import readable_tags

_MAX_QUERIES = 8  # RFC 9989 section 4.10
_MAX_RECORD_BYTES = 4096
# RFC 1035 section 2.3.4: at most 63 octets; with the underscore that names of records begin with.
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_VERSION = re.compile(rb"v[ \t]*=[ \t]*DMARC1[ \t]*(;|$)")


class DmarcRecord(Struct, frozen=True):
    """A valid DMARC record and the domain that publishes it."""

    domain: str
    tags: dict[str, str]

    @property
    def is_public_suffix(self) -> bool:
        # A top-level domain that forgot to say psd=y must not align all the domains below it.
        return self._psd == "y" or (self._psd != "n" and "." not in self.domain)

    @property
    def is_organization(self) -> bool:
        return self._psd == "n"

    @property
    def _psd(self) -> str:
        return self.tags.get("psd", "u").lower()


def ascii_domain(text: str) -> str | None:
    """Return the lower-case A-label form of a domain with at least two labels, None for anything else."""
    if len(text) > 255:
        return None
    name = text.removesuffix(".").lower()
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            return None
    labels = name.split(".")
    # 255 octets on the wire (RFC 1035 section 2.3.4), with a length before the first label and a root behind.
    well_formed = len(name) <= 253 and all(_LABEL.fullmatch(label) for label in labels)
    return name if well_formed and len(labels) > 1 else None


def domain_of(address: str) -> str | None:
    """Return the domain of an email address; None if it has none that is valid in DNS."""
    return ascii_domain(address.rpartition("@")[2]) if "@" in address else None


class TextLookup(Protocol):
    """Answers with the TXT records of a name, or raises DnsTemporary."""

    def txt(self, name: str) -> tuple[bytes, ...]: ...


def walk(domain: str, lookup: TextLookup) -> tuple[DmarcRecord, ...]:
    """Return every DMARC record on the way from a domain up to its root, longest name first."""
    found: list[DmarcRecord] = []
    for name in _steps(domain):
        record = _record_at(name, lookup)
        if record is not None:
            found.append(record)
            if record.is_public_suffix or record.is_organization:
                break
    return tuple(found)


def organization(domain: str, records: tuple[DmarcRecord, ...]) -> str:
    """Return the organizational domain, by a finished walk from this domain (section 4.10.2)."""
    for record in records:
        if record.is_organization:
            return record.domain
        if record.is_public_suffix and record.domain != domain:
            return _one_label_below(record.domain, domain)
    return records[-1].domain if records else domain


def _steps(domain: str) -> list[str]:
    """Return the names to ask: the domain, then its parents of seven labels and fewer, so at most eight."""
    labels = domain.split(".")
    longest_parent = min(len(labels) - 1, _MAX_QUERIES - 1)
    return [domain, *(".".join(labels[-count:]) for count in range(longest_parent, 0, -1))]


def _record_at(domain: str, lookup: TextLookup) -> DmarcRecord | None:
    """Return the only DMARC record of a name: several at one name count as none (section 4.10)."""
    texts = [text for text in lookup.txt(f"_dmarc.{domain}") if _VERSION.match(text)]
    if len(texts) != 1 or len(texts[0]) > _MAX_RECORD_BYTES:
        return None
    return DmarcRecord(domain, readable_tags(texts[0]))


def _one_label_below(suffix: str, domain: str) -> str:
    return ".".join(domain.split(".")[-(suffix.count(".") + 2) :])
