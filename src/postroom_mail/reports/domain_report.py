"""Finds the report in the files of an email."""

from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reports.dmarc_report import AggregateReport, read_aggregate
from postroom_mail.reports.tls_report import TlsReport, read_tls
from postroom_mail.reports.unpack import BadReport, unpack

MAX_FILES = 5


def find_report(mail: ParsedMail) -> AggregateReport | TlsReport | None:
    """Return None for anything else: a failure report, a personal mail, damage."""
    for file in mail.attachments[:MAX_FILES]:
        try:
            document = unpack(file.content)
            return read_tls(document) if document.startswith(b"{") else read_aggregate(document)
        except BadReport:
            continue
    return None
