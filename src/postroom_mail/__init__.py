"""Reads, judges and writes email: bytes in, values out. Each name is loaded when it is first used."""

from typing import TYPE_CHECKING

__version__ = "1.0.0"

if TYPE_CHECKING:
    from postroom_mail.authentication.arc import ArcVerdict
    from postroom_mail.authentication.authenticity import Judgement
    from postroom_mail.authentication.dkim_verify import DkimVerdict
    from postroom_mail.authentication.lookup import DnsTemporary, Lookup
    from postroom_mail.authentication.sign_and_verify import (
        SigningKey,
        authenticate,
        check_spf,
        new_dkim_key,
        seal_arc,
        sign_dkim,
        verify_arc,
        verify_dkim,
    )
    from postroom_mail.files.extraction import Extraction
    from postroom_mail.files.file_text import file_text
    from postroom_mail.meaning import (
        HtmlText,
        Meaning,
        categorize,
        find_codes,
        find_links,
        html_text,
        parse,
        screen,
        search_tokens,
        understand,
    )
    from postroom_mail.mime.address import Address
    from postroom_mail.mime.parse import ParsedAttachment, ParsedMail
    from postroom_mail.reading.appointment import find_appointment
    from postroom_mail.reading.calendar import Attendee, Calendar, Occurrence
    from postroom_mail.reading.category import Kind
    from postroom_mail.reading.links import LinkDetail
    from postroom_mail.reading.reply import reply_text
    from postroom_mail.reports.bounce import read_report
    from postroom_mail.reports.report import RecipientReport, Report
    from postroom_mail.screening.examine import Findings
    from postroom_mail.screening.rules import RaisedSignal
    from postroom_mail.writing.compose import DraftAttachment
    from postroom_mail.writing.header_words import DraftError
    from postroom_mail.writing.new_email import compose

__all__ = [
    "Address",
    "ArcVerdict",
    "Attendee",
    "Calendar",
    "DkimVerdict",
    "DnsTemporary",
    "DraftAttachment",
    "DraftError",
    "Extraction",
    "Findings",
    "HtmlText",
    "Judgement",
    "Kind",
    "LinkDetail",
    "Lookup",
    "Meaning",
    "Occurrence",
    "ParsedAttachment",
    "ParsedMail",
    "RaisedSignal",
    "RecipientReport",
    "Report",
    "SigningKey",
    "authenticate",
    "categorize",
    "check_spf",
    "compose",
    "file_text",
    "find_appointment",
    "find_codes",
    "find_links",
    "html_text",
    "new_dkim_key",
    "parse",
    "read_report",
    "reply_text",
    "screen",
    "seal_arc",
    "search_tokens",
    "sign_dkim",
    "understand",
    "verify_arc",
    "verify_dkim",
]

# Where each name is: a type checker reads the imports above, a program takes this way.
_NAMES = {
    "authentication.arc": ("ArcVerdict",),
    "authentication.authenticity": ("Judgement",),
    "authentication.dkim_verify": ("DkimVerdict",),
    "authentication.lookup": ("DnsTemporary", "Lookup"),
    "authentication.sign_and_verify": (
        "SigningKey",
        "authenticate",
        "check_spf",
        "new_dkim_key",
        "seal_arc",
        "sign_dkim",
        "verify_arc",
        "verify_dkim",
    ),
    "files.extraction": ("Extraction",),
    "files.file_text": ("file_text",),
    "meaning": (
        "HtmlText",
        "Meaning",
        "categorize",
        "find_codes",
        "find_links",
        "html_text",
        "parse",
        "screen",
        "search_tokens",
        "understand",
    ),
    "mime.address": ("Address",),
    "mime.parse": ("ParsedAttachment", "ParsedMail"),
    "reading.appointment": ("find_appointment",),
    "reading.calendar": ("Attendee", "Calendar", "Occurrence"),
    "reading.category": ("Kind",),
    "reading.links": ("LinkDetail",),
    "reading.reply": ("reply_text",),
    "reports.bounce": ("read_report",),
    "reports.report": ("RecipientReport", "Report"),
    "screening.examine": ("Findings",),
    "screening.rules": ("RaisedSignal",),
    "writing.compose": ("DraftAttachment",),
    "writing.header_words": ("DraftError",),
    "writing.new_email": ("compose",),
}

if not TYPE_CHECKING:  # else every name would seem to exist

    def __getattr__(name: str) -> object:
        """Load a public name, and keep it."""
        from importlib import import_module

        for module, names in _NAMES.items():
            if name in names:
                globals()[name] = found = getattr(import_module(f"{__name__}.{module}"), name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
