"""Signals against an email: the rules of `postroom_mail.screening`, with the inbox's known correspondents.

The rules take a tenth of a second to load, so they are imported when needed, or when there is time.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from postroom.mailbox import correspondents
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Document, Signal, Verdict
from postroom.processes.analysis import Analysis
from postroom.storage.database import Tx
from postroom_mail.html.page import HtmlPage
from postroom_mail.languages import patterns
from postroom_mail.mime.parse import ParsedMail

if TYPE_CHECKING:
    from postroom_mail.screening.examine import Findings
    from postroom_mail.screening.passage import Passage

INSIDE = "pass"  # mail that never left this server has an authentic sender

JUDGE = "judge"  # the signal of the operator's judge
WEIGHTS: dict[Verdict, int] = {"clean": 0, "suspicious": 3, "malicious": 6}


class Screening(Struct, frozen=True):
    verdict: Verdict
    signals: list[Signal]


# In doubt against the email: then approval on risk is asked for.
NOT_EXAMINED = Screening("suspicious", [Signal("not_examined", 3, "Could not be examined by the rules.", "")])


def judged(document: Document, found: Screening) -> Document:
    """Adds the verdict. An email that is not clean is not answered automatically."""
    return structs.replace(
        document,
        verdict=found.verdict,
        signals=found.signals,
        auto_replyable=document.auto_replyable and found.verdict == "clean",
    )


def with_opinion(document: Document, verdict: Verdict, reason: str) -> Document | None:
    """Adds a judge's opinion. None if it has one already."""
    if any(signal.name == JUDGE for signal in document.signals):
        return None
    signal = Signal(JUDGE, WEIGHTS[verdict], reason or "The judge warns about it.", "")
    worse = max(document.verdict or "clean", verdict, key=list(WEIGHTS).index)
    return judged(document, Screening(worse, [*document.signals, signal]))


def of_text(mail: ParsedMail, shown: str, page: HtmlPage, dmarc: str, said: "Passage") -> Screening:
    """Checks that need neither the inbox nor the network. `shown` still has its invisible characters."""
    return of_mail(mail, shown, page, (), dmarc, (), said)


def with_sender(
    found: Screening, mail: ParsedMail, dmarc: str, known: Sequence[str], colleagues: Sequence[str] = ()
) -> Screening:
    """Adds what the inbox's correspondents show."""
    from postroom_mail.screening import examine
    from postroom_mail.screening.rules import RaisedSignal

    before = examine.Findings(
        found.verdict,
        tuple(RaisedSignal(each.name, each.weight, each.excerpt) for each in found.signals),
    )
    subject = examine.Subject(
        from_addr=mail.from_addr,
        body_html=mail.body_html,
        dmarc=dmarc,
        known=tuple(known),
        colleagues=tuple(colleagues),
        reply_to=mail.reply_to,
    )
    after = examine.examine_sender(before, subject)
    return found if after is before else _of(after)


def load() -> None:
    """Loads the rules, so that the first email does not wait for them."""
    from postroom_mail.junk import model
    from postroom_mail.screening import examine  # noqa: F401

    model.load_start()


def prepare() -> Iterator[bool]:
    """Compiles patterns for rare words ahead, one piece at a time."""
    from postroom_mail.screening import wording_rules

    for script in wording_rules.SCRIPTS:
        wording_rules.wordings(script)
        yield True
    while patterns.compile_one():
        yield True


def name_of(from_addr: str) -> str:
    """Return the name as correspondents' names are compared; "" if it cannot be read."""
    from postroom_mail.screening import senders

    return Analysis().run("sender", "", lambda: senders.name_of(from_addr))


def record_name(tx: Tx, address: str, document: Document) -> None:
    is_proven = document.auth is not None and document.auth.dmarc == "pass"
    correspondents.record_name(tx, document.inbox_id, address, name_of(document.from_addr), is_proven)


def of_mail(
    mail: ParsedMail,
    shown: str,
    page: HtmlPage,
    files: Sequence[Attachment],
    dmarc: str,
    known: Sequence[str],
    said: "Passage | None" = None,
    colleagues: Sequence[str] = (),
) -> Screening:
    from postroom_mail.screening import examine

    return _of(
        examine.examine(
            examine.Subject(
                from_addr=mail.from_addr,
                subject=mail.subject,
                body_text=shown,
                body_html=mail.body_html,
                page=page,
                attachment_names=tuple(file.filename for file in files),
                attachment_texts=tuple(file.parsed_text for file in files if file.parsed_text),
                files=tuple(mail.attachments),
                dmarc=dmarc,
                known=tuple(known),
                colleagues=tuple(colleagues),
                reply_to=mail.reply_to,
            ),
            said,
        )
    )


def _of(found: "Findings") -> Screening:
    shown = [Signal(each.name, each.weight, each.reason, each.excerpt) for each in found.signals]
    return Screening(found.verdict, shown)
