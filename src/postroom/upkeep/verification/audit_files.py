"""Checks exported audit logs without a server: chain, signed heads, receipts and gaps."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from postroom.accounts.audit_erasure import ERASED, read_named
from postroom.accounts.signing_keys import canonical, digest

Entry = dict[str, Any]
ENTRY, HEAD, KEY, RECEIPT = "entry", "head", "key", "receipt"
# What a line must have, and of which type: all else is compared, never trusted.
SHAPES: dict[str, dict[str, type | tuple[type, ...]]] = {
    ENTRY: {"sequence": (int, type(None)), "hash": (str, type(None)), "id": str},
    HEAD: {"accountId": str, "count": int, "hash": str, "keyId": str, "signature": str},
    KEY: {"keyId": str, "publicKey": str},
    RECEIPT: {"message": dict, "decisions": list, "keyId": str, "signature": str},
}
SAID_TWICE = ("action", "at", "actor", "method", "address", "userAgent")  # in a receipt and in its entries


class AuditFinding(NamedTuple):
    id: str  # of an entry, the number of a head, or the message of a receipt
    what: str


class AuditLog:
    """What several files hold together of one account; an entry may be in more than one."""

    def __init__(self, account_id: str = "", trusted: Mapping[str, bytes] | None = None) -> None:
        """Begin with `trusted` keys, if any: then those of the files do not count."""
        self.account_id = account_id  # "" until a head names it
        self.entries: dict[int, Entry] = {}
        self.heads: list[dict[str, Any]] = []
        self.receipts: list[dict[str, Any]] = []
        self.keys: dict[str, bytes] = dict(trusted or {})
        self.findings: list[AuditFinding] = []
        self._is_pinned = trusted is not None
        self._by_id: dict[Any, Entry] = {}

    def read(self, content: bytes) -> None:
        """Read an exported file, or an answer of the server (log, head, keys, receipt); else ValueError."""
        for kind, item in _items(content):
            if kind == ENTRY:
                self._add_entry(item)
            elif kind == HEAD:
                self.add_head(item)
            elif kind == KEY:
                self.add_key(item["keyId"], _from_base64url(item["publicKey"]))
            else:
                self.receipts.append(item)

    def _add_entry(self, entry: Entry) -> None:
        sequence = entry["sequence"]
        if sequence is None:
            return  # a refusal whose repeats were still counted
        known = self.entries.setdefault(sequence, entry)
        if known != entry and known.get("hash") == entry.get("hash") and "erasedBy" in {**known, **entry}:
            if "erasedBy" in known:  # a copy from before the erasure
                self.entries[sequence] = entry
        elif known != entry:
            self._find(entry, f"two different entries have the number {sequence}: {known.get('id')} too")

    def add_head(self, head: dict[str, Any]) -> None:
        self.heads.append(head)
        self.account_id = self.account_id or head["accountId"]

    def add_key(self, key_id: str, public_key: bytes) -> None:
        if self._is_pinned:
            return
        if self.keys.setdefault(key_id, public_key) != public_key:
            self.findings.append(AuditFinding(key_id, "two different public keys have this id"))

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
        for receipt in self.receipts:
            self._verify_receipt(receipt)
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
            first, last = before["sequence"] + 1, entry["sequence"] - 1
            missing = f"entry {first} is" if first == last else f"entries {first} to {last} are"
            self._find(entry, f"removed: {missing} missing before it")
        elif entry.get("previousHash") != before.get("hash"):
            self._find(entry, f"changed or swapped: it does not follow {before.get('id')}")

    def _verify_erased(self, entry: Entry) -> None:
        """Verify an erased entry: one of the verified chain has the hash of what the erasure left."""
        content = {name: value for name, value in entry.items() if name not in ("hash", "erasedBy")}
        by = self._by_id.get(entry["erasedBy"])
        named = read_named(by.get("after")) if by is not None and by.get("action") == ERASED else {}
        if by is None:
            self._find(entry, f"the entry of its erasure is not in the files: {entry['erasedBy']}")
        elif named.get(str(entry["sequence"])) != digest(canonical(content)):
            self._find(entry, f"changed: {entry['erasedBy']} names another content for it, or none")

    def _verify_head(self, head: dict[str, Any]) -> None:
        name, count = f"head {head['count']}", head["count"]
        self._verify_signature(name, head)
        if head["accountId"] != self.account_id:
            what = f"swapped: it is of the account {head['accountId']}, not of {self.account_id}"
            self.findings.append(AuditFinding(name, what))
            return
        entry = self.entries.get(count)
        if entry is not None and entry.get("hash") != head["hash"]:
            self._find(entry, f"changed: the head signed at {head.get('at')} has another hash for it")
        if entry is None and self.entries and count > max(self.entries):
            self.findings.append(AuditFinding(name, "removed: entries up to this signed head are missing"))

    def _verify_signature(self, name: str, signed: dict[str, Any]) -> None:
        key = self.keys.get(signed["keyId"])
        content = {field: value for field, value in signed.items() if field != "signature"}
        if key is None:
            where = "among the keys that you trust" if self._is_pinned else "in the files"
            self.findings.append(AuditFinding(name, f"the key {signed['keyId']} is not {where}"))
        elif not _is_signed(key, canonical(content), signed["signature"]):
            self.findings.append(AuditFinding(name, "changed: its signature does not match"))

    def _verify_receipt(self, receipt: dict[str, Any]) -> None:
        """Verify that a receipt agrees with the log; without a log, its signature alone counts."""
        name = f"receipt {receipt['message'].get('id')}"
        self._verify_signature(name, receipt)
        for decision in receipt["decisions"] if self.entries else ():
            entry_id = decision.get("entryId") if isinstance(decision, dict) else None
            entry = self._by_id.get(entry_id) if isinstance(entry_id, str) else None
            if entry is None:
                self.findings.append(AuditFinding(name, f"the entry {entry_id} is not in the files"))
            elif entry.get("hash") != decision.get("entryHash") or any(
                decision.get(field) != entry.get(field) for field in SAID_TWICE
            ):
                self.findings.append(AuditFinding(name, f"changed: the entry {entry_id} says something else"))

    def _find(self, entry: Entry, what: str) -> None:
        self.findings.append(AuditFinding(str(entry.get("id")), what))


def bring_together(logs: Sequence[AuditLog]) -> list[AuditLog]:
    """Return the logs, with what was kept elsewhere: heads, keys and receipts of files without entries."""
    whole = [log for log in logs if log.entries]
    loose = [log for log in logs if not log.entries]
    for log, key in ((log, key) for each in loose for key in each.keys.items() for log in whole):
        log.add_key(*key)
    for log in loose:
        log.heads = [head for head in log.heads if not _take_head(whole, head)]
        log.receipts = [receipt for receipt in log.receipts if not _take_receipt(whole, receipt)]
        if whole:
            missing = sorted({head["accountId"] for head in log.heads})
            log.findings += [
                AuditFinding(each, "no entries of this account are in the files") for each in missing
            ]
    return [*whole, *loose]


def _take_head(logs: Sequence[AuditLog], head: dict[str, Any]) -> bool:
    for log in logs:
        if log.account_id in ("", head["accountId"]):
            log.add_head(head)
            return True
    return False


def _take_receipt(logs: Sequence[AuditLog], receipt: dict[str, Any]) -> bool:
    """Assign a receipt by the entries of its decisions; to the only log there is."""
    ids = {each.get("entryId") for each in receipt["decisions"] if isinstance(each, dict)}
    found = [log for log in logs if any(entry["id"] in ids for entry in log.entries.values())]
    for log in found[:1] or (logs if len(logs) == 1 else ()):
        log.receipts.append(receipt)
        return True
    return False


def _items(content: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return what a file has, with its kind: one JSON object a line, or one answer of the server."""
    try:
        whole = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        lines = [line for line in content.splitlines() if line.strip()]
        yield from (_item(_decode(line)) for line in lines)
        return
    for item in _of_answer(whole) if isinstance(whole, dict) else [whole]:
        yield _item(item)


def _decode(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("a line is no JSON") from None


def _of_answer(answer: dict[str, Any]) -> Iterable[Any]:
    if isinstance(answer.get("data"), list):
        return [{ENTRY: entry} for entry in answer["data"]]
    if isinstance(answer.get("keys"), list):
        return [{KEY: key} for key in answer["keys"]]
    if "signature" in answer:
        return [{RECEIPT if "decisions" in answer else HEAD: answer}]
    return [answer]


def _item(line: Any) -> tuple[str, dict[str, Any]]:
    for kind, shape in SHAPES.items():
        item = line.get(kind) if isinstance(line, dict) else None
        if isinstance(item, dict) and all(isinstance(item.get(name), shape[name]) for name in shape):
            return kind, item
    raise ValueError("a line is neither an entry, a head, a key nor a receipt")


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
