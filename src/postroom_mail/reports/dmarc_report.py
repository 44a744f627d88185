"""A DMARC aggregate report (RFC 9990, before it RFC 7489): who sent as a domain, and what passed."""

import io
from ipaddress import ip_address
from typing import Any

from msgspec import Struct

from postroom_mail.reports.unpack import BadReport

MAX_ELEMENTS = 200_000
MAX_DEPTH = 20
MAX_ROWS = 5_000
MAX_CHARACTERS = 200
MAX_DIGITS = 12
LATEST_SECONDS = 4_102_444_800  # the year 2100
DISPOSITIONS = ("none", "quarantine", "reject", "pass")


class AggregateRow(Struct, frozen=True):
    source: str
    count: int
    disposition: str
    dkim: str
    spf: str


class AggregateReport(Struct, frozen=True):
    reporter: str
    report_id: str
    domain: str
    begins_at: int
    ends_at: int
    rows: tuple[AggregateRow, ...]


def read_aggregate(document: bytes) -> AggregateReport:
    """Raises BadReport. A row without usable data is left out."""
    texts: dict[str, str] = {}
    rows: list[AggregateRow] = []
    of_row: dict[str, str] = {}
    for path, text in _texts(document):
        if path == "feedback/record":
            if (row := _to_row(of_row)) is not None and len(rows) < MAX_ROWS:
                rows.append(row)
            of_row = {}
        elif path.startswith("feedback/record/"):
            of_row.setdefault(path.removeprefix("feedback/record/"), text)
        else:
            texts.setdefault(path.removeprefix("feedback/"), text)
    begins, ends = (_number(texts.get(f"report_metadata/date_range/{name}", "")) for name in ("begin", "end"))
    domain = texts.get("policy_published/domain", "").lower().rstrip(".")
    if not domain or begins is None or ends is None or not begins <= ends <= LATEST_SECONDS:
        raise BadReport("no domain, or no time")
    reporter, report_id = (texts.get(f"report_metadata/{name}", "") for name in ("org_name", "report_id"))
    return AggregateReport(reporter, report_id, domain, begins * 1000, ends * 1000, tuple(rows))


def _texts(document: bytes) -> "list[tuple[str, str]]":
    """Return path and text of each element, in the order in which they end.

    No document type is read: it could expand few bytes to many.
    """
    from defusedxml.ElementTree import iterparse

    found: list[tuple[str, str]] = []
    names: list[str] = []
    try:
        for event, element in iterparse(io.BytesIO(document), events=("start", "end"), forbid_dtd=True):
            if event == "start":
                names.append(_local_name(element))
                if len(names) > MAX_DEPTH:
                    raise BadReport("too deep")
                continue
            found.append(("/".join(names), (element.text or "").strip()[:MAX_CHARACTERS]))
            if len(found) > MAX_ELEMENTS:
                raise BadReport("too many elements")
            names.pop()
            element.clear()
    except BadReport:
        raise
    except Exception as error:  # of the parser or of an encoding that it names
        raise BadReport(str(error)[:MAX_CHARACTERS]) from None
    return found


def _local_name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2][:MAX_CHARACTERS]


def _to_row(texts: dict[str, str]) -> AggregateRow | None:
    count = _number(texts.get("row/count", ""))
    try:
        source = ip_address(texts.get("row/source_ip", "")).compressed
    except ValueError:
        return None
    if not count:
        return None
    said = texts.get("row/policy_evaluated/disposition", "").lower()
    disposition = said if said in DISPOSITIONS else "none"
    dkim, spf = (_verdict(texts.get(f"row/policy_evaluated/{name}", "")) for name in ("dkim", "spf"))
    return AggregateRow(source, count, disposition, dkim, spf)


def _verdict(word: str) -> str:
    return "pass" if word.lower() == "pass" else "fail"


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None
