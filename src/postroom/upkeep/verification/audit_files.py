"""Checks exported audit logs without a server: chain, signed heads and gaps, each finding with its entry."""

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from postroom.accounts.audit_erasure import ERASED, read_named
from postroom.accounts.signing_keys import canonical, digest

Entry = dict[str, Any]


class AuditFinding(NamedTuple):
    id: str  # of an entry, or the number of a head
    what: str


class AuditLog:
    """What several files hold together; an entry may be in more than one."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.heads: list[dict[str, Any]] = []
        self.keys: dict[str, bytes] = {}
        self.findings: list[AuditFinding] = []
        self._by_id: dict[Any, Entry] = {}

    def read(self, content: bytes) -> None:
        """Read an exported file, or an answer of `GET /v1/audit` or `/v1/audit/head`; else ValueError."""
        for item in _items(content):
            if "entry" in item:
                self._add_entry(item["entry"])
            elif "head" in item:
                self.heads.append(item["head"])
            elif "key" in item:
                self._add_key(item["key"])
            else:
                raise ValueError("a line is neither an entry, a head nor a key")

    def _add_entry(self, entry: Entry) -> None:
        sequence = entry.get("sequence")
        if not isinstance(sequence, int):
            return  # a refusal whose repeats were still counted
        known = self.entries.setdefault(sequence, entry)
        if known != entry and known.get("hash") == entry.get("hash") and "erasedBy" in {**known, **entry}:
            if "erasedBy" in known:  # a copy from before the erasure
                self.entries[sequence] = entry
        elif known != entry:
            self._find(entry, f"two different entries have the number {sequence}: {known.get('id')} too")

    def _add_key(self, key: dict[str, Any]) -> None:
        self.keys[str(key.get("keyId"))] = _from_base64url(str(key.get("publicKey")))

    def verify(self) -> list[AuditFinding]:
        """Return what is wrong, in the order of the log; nothing if all holds."""
        self._by_id = {entry.get("id"): entry for entry in self.entries.values()}
        ordered = [self.entries[number] for number in sorted(self.entries)]
        before: Entry | None = None
        for entry in ordered:
            self._verify_entry(entry, before)
            before = entry
        for head in self.heads:
            self._verify_head(head)
        return self.findings

    def _verify_entry(self, entry: Entry, before: Entry | None) -> None:
        content = {name: value for name, value in entry.items() if name != "hash"}
        if "erasedBy" in entry:
            self._verify_erased(entry)
        elif digest(canonical(content)) != entry.get("hash"):
            self._find(entry, "changed: its hash does not match its content")
        if before is None:
            if entry["sequence"] == 1 and entry.get("previousHash"):
                self._find(entry, "changed: the first entry names one before it")
        elif entry["sequence"] != before["sequence"] + 1:
            missing = f"{before['sequence'] + 1} to {entry['sequence'] - 1}"
            self._find(entry, f"removed: entries {missing} are missing before it")
        elif entry.get("previousHash") != before.get("hash"):
            self._find(entry, f"changed or swapped: it does not follow {before.get('id')}")

    def _verify_erased(self, entry: Entry) -> None:
        """An entry of the chain, which is verified itself, has the hash of what the erasure left."""
        content = {name: value for name, value in entry.items() if name not in ("hash", "erasedBy")}
        by = self._by_id.get(entry["erasedBy"])
        named = read_named(by.get("after")) if by is not None and by.get("action") == ERASED else {}
        if by is None:
            self._find(entry, f"the entry of its erasure is not in the files: {entry['erasedBy']}")
        elif named.get(str(entry["sequence"])) != digest(canonical(content)):
            self._find(entry, f"changed: {entry['erasedBy']} names another content for it, or none")

    def _verify_head(self, head: dict[str, Any]) -> None:
        name = f"head {head.get('count')}"
        key = self.keys.get(str(head.get("keyId")))
        content = {field: value for field, value in head.items() if field != "signature"}
        if key is None:
            self.findings.append(AuditFinding(name, f"the key {head.get('keyId')} is not in the files"))
        elif not _is_signed(key, canonical(content), str(head.get("signature"))):
            self.findings.append(AuditFinding(name, "changed: its signature does not match"))
        entry = self.entries.get(head.get("count") or 0)
        if entry is not None and entry.get("hash") != head.get("hash"):
            self._find(entry, f"changed: the head signed at {head.get('at')} has another hash for it")
        if entry is None and self.entries and (head.get("count") or 0) > max(self.entries):
            self.findings.append(AuditFinding(name, "removed: entries up to this signed head are missing"))

    def _find(self, entry: Entry, what: str) -> None:
        self.findings.append(AuditFinding(str(entry.get("id")), what))


def _items(content: bytes) -> Iterator[dict[str, Any]]:
    """Return entries, heads and keys of a file: one JSON object a line, or one answer of the server."""
    try:
        whole = msgspec.json.decode(content)
    except msgspec.DecodeError:
        yield from _objects(msgspec.json.decode(line) for line in content.splitlines() if line.strip())
        return
    yield from _of_answer(whole) if isinstance(whole, dict) else _objects([whole])


def _of_answer(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "data" in answer:
        yield from _objects({"entry": entry} for entry in answer["data"])
    elif "keys" in answer:
        yield from _objects({"key": key} for key in answer["keys"])
    elif "signature" in answer and "count" in answer:
        yield {"head": answer}
    else:
        yield answer


def _objects(found: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for item in found:
        if not isinstance(item, dict) or not all(isinstance(value, dict) for value in item.values()):
            raise ValueError("a line is no JSON object of an audit log")
        yield item


def _is_signed(key: bytes, content: bytes, signature: str) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(_from_base64url(signature), content)
    except (InvalidSignature, ValueError):
        return False
    return True


def _from_base64url(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
