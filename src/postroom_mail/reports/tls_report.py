"""A TLS report (RFC 8460 section 4.4): how often others could encrypt on the way to a domain."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postroom_mail.reports.unpack import BadReport

MAX_ROWS = 1_000
MAX_CHARACTERS = 200
SUCCESS = "success"

Count = Annotated[int, Meta(ge=0, le=10**12)]


class ReportedSpan(Struct, frozen=True, rename="kebab"):
    start_datetime: str
    end_datetime: str


class _Policy(Struct, frozen=True, rename="kebab"):
    policy_type: str = ""
    policy_domain: str = ""


class _Summary(Struct, frozen=True, rename="kebab"):
    total_successful_session_count: Count = 0


class _Failure(Struct, frozen=True, rename="kebab"):
    result_type: str
    failed_session_count: Count = 0


class _PolicyResult(Struct, frozen=True, rename="kebab"):
    policy: _Policy
    summary: _Summary
    failure_details: list[_Failure] = []


class _Document(Struct, frozen=True, rename="kebab"):
    organization_name: str
    date_range: ReportedSpan
    report_id: str
    policies: list[_PolicyResult]


class TlsRow(Struct, frozen=True):
    """`result` is success, or a failure term of section 4.3."""

    domain: str
    policy: str
    result: str
    count: int


_documents = msgspec.json.Decoder(_Document)  # made once: two threads that make it at once crash msgspec 0.22


class TlsReport(Struct, frozen=True):
    reporter: str
    report_id: str
    begins_at: int
    ends_at: int
    rows: tuple[TlsRow, ...]


def read_tls(document: bytes) -> TlsReport:
    """Raises BadReport."""
    try:
        said = _documents.decode(document)
        begins_at = _milliseconds(said.date_range.start_datetime)
        ends_at = _milliseconds(said.date_range.end_datetime)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise BadReport(str(error)[:MAX_CHARACTERS]) from None
    if not 0 <= begins_at <= ends_at:
        raise BadReport("it ends before it begins")
    rows = [row for policy in said.policies for row in _rows_of(policy) if row.count][:MAX_ROWS]
    return TlsReport(_cut(said.organization_name), _cut(said.report_id), begins_at, ends_at, tuple(rows))


def _rows_of(found: _PolicyResult) -> list[TlsRow]:
    domain = _cut(found.policy.policy_domain).lower().rstrip(".")
    policy = _cut(found.policy.policy_type)
    successes = TlsRow(domain, policy, SUCCESS, found.summary.total_successful_session_count)
    failures = found.failure_details[:MAX_ROWS]
    return [
        successes,
        *(TlsRow(domain, policy, _cut(each.result_type), each.failed_session_count) for each in failures),
    ]


def _cut(text: str) -> str:
    return text.replace("\0", "")[:MAX_CHARACTERS]


def _milliseconds(written: str) -> int:
    return round(datetime.fromisoformat(written.upper()).timestamp() * 1000)
