"""Reports written as text for people: their recipients and reasons, by the table of forms.

No single sign makes a report: words of failure also need a recipient, and unknown words need a
recipient, a code and the returned mail.
"""

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from postroom_mail.reports import plain_forms, reasons, wording
from postroom_mail.reports.notice import Notice, from_line_in, has_returned_mail, returned_head
from postroom_mail.reports.report import RECIPIENTS_LIMIT, RecipientReport, clean_address

REASON_LINES = 12
# Whom a report tells its reader to ask.
HELPING = frozenset(("postmaster", "mailer-daemon", "abuse", "support", "helpdesk", "hostmaster", "noc"))

Named = dict[str, str]


class ReportSigns(Struct, frozen=True):
    """The lines of a text, with its best reason and the line with a code."""

    lines: list[str]
    telling: str
    coded: str


def read_failed_recipients(notice: Notice) -> tuple[RecipientReport, ...]:
    """Read the failed recipients that Exim and Gmail name in a header, each with the reason in the text."""
    written = notice.fields.joined("x-failed-recipients")[: RECIPIENTS_LIMIT * 400]
    addresses = map(clean_address, written.split(",", RECIPIENTS_LIMIT)[:RECIPIENTS_LIMIT])
    named = [address for address in addresses if address]
    if not named:
        return ()
    signs = _signs(notice)
    return _reported("failed", {address: _reason_below(signs, address) for address in named}, signs)


def read_plain_report(notice: Notice, *, is_returned: bool) -> tuple[RecipientReport, ...]:
    """Read a report.

    `is_returned`: it came to the signed return path, so any reason is about that recipient.
    """
    is_delay = wording.says_delay(notice.subject, notice.words)
    is_failure = wording.says_failure(f"{notice.subject}\n{notice.words}")
    signs = _signs(notice)
    has_copy = has_returned_mail(notice)
    named = _named(signs, _own_addresses(notice), is_sure=bool(has_copy or signs.coded or is_returned))
    if not (is_delay or is_failure or (signs.coded and has_copy)):
        return ()
    if not named and signs.telling and (has_copy or is_returned):
        named = {"": signs.telling}
    return _reported("delayed" if is_delay else "failed", named, signs)


def _named(signs: ReportSigns, own: set[str], *, is_sure: bool) -> Named:
    return _named_by_form(signs, own) or (_mentioned(signs, own) if is_sure else {})


def with_words(notice: Notice, recipients: tuple[RecipientReport, ...]) -> tuple[RecipientReport, ...]:
    """Adds the server's text for people to a failure that has only a status."""
    words = notice.words.lower()
    silent = [each for each in recipients if each.is_failed and not each.diagnostic]
    named = {each.final_recipient for each in silent if each.final_recipient.lower() in words} - {""}
    if not named:
        return recipients
    signs = _signs(notice)
    said = {address: _one_line(_reason_below(signs, address)) for address in named}
    return tuple(
        replace(each, diagnostic=each.diagnostic or said.get(each.final_recipient, "")) for each in recipients
    )


def with_command(notice: Notice, recipients: tuple[RecipientReport, ...]) -> tuple[RecipientReport, ...]:
    """Add to the reason that the sender was refused, and no recipient, if the transcript shows it."""
    words = notice.words
    if not plain_forms.REFUSED_SENDER.search(words) or plain_forms.REFUSED_RECIPIENT.search(words):
        return recipients
    return tuple(
        replace(each, diagnostic=f"{each.diagnostic} (in reply to MAIL FROM)".strip())
        if each.is_failed
        else each
        for each in recipients
    )


def _signs(notice: Notice) -> ReportSigns:
    lines = notice.words.split("\n")
    coded = next((line.strip() for line in lines if _is_coded(line)), "")
    return ReportSigns(lines, _labelled_reason(lines) or coded or _known_words(lines), coded)


def _labelled_reason(lines: list[str]) -> str:
    for number, line in enumerate(lines):
        match = plain_forms.REASON_LINE.match(line)
        if match:
            reason = match[1] or " ".join(_paragraph(lines, number + 1, skip_blank=True))
            if reasons.is_telling(reason):
                return reason
    return ""


def _known_words(lines: list[str]) -> str:
    return next((line.strip() for line in lines if reasons.is_telling(line)), "")


def _own_addresses(notice: Notice) -> set[str]:
    """Return addresses of the report and of the sender: nobody gets a report at the address that failed."""
    names = ("to", "from", "reply-to", "delivered-to")
    written = " ".join(notice.fields.joined(name)[:2_000] for name in names)
    written += from_line_in(returned_head(notice) or notice.text[len(notice.words) :])
    return {match[0].lower() for match in plain_forms.ANY_ADDRESS.finditer(written)}


def _named_by_form(signs: ReportSigns, own: set[str]) -> Named:
    for form in plain_forms.RECIPIENT_FORMS.values():
        named: Named = {}
        found = {number: match for number, line in enumerate(signs.lines) if (match := form.match(line))}
        for number, match in found.items():
            line = signs.lines[number]
            if match[1].lower() not in own and len(named) < RECIPIENTS_LIMIT:
                reason = _reason_at(_up_to_next(signs, number, found), number, line[match.end() :])
                for each in (match[1], *_listed_behind(line, match.end(1))):
                    named[each] = _more_exact(named.get(each, ""), reason)
        if named:
            return named
    return {}


def _up_to_next(signs: ReportSigns, number: int, found: Collection[int]) -> ReportSigns:
    """Return the signs without the lines from the next recipient on, which are about that one."""
    end = next((each for each in found if each > number), None)
    return signs if end is None else replace(signs, lines=signs.lines[:end])


def _mentioned(signs: ReportSigns, own: set[str]) -> Named:
    """Return the first address in any sentence, except those of the people who help."""
    found = (match[0] for line in signs.lines for match in plain_forms.ANY_ADDRESS.finditer(line))
    address = next((each for each in found if each.lower() not in own and not _helps(each)), None)
    if address is None:
        return {}
    line = next(line for line in signs.lines if address in line)
    listed = _listed_behind(line, line.index(address) + len(address))
    return dict.fromkeys([address, *listed], signs.telling)


def _helps(address: str) -> bool:
    return address.partition("@")[0].lower() in HELPING


def _listed_behind(line: str, end: int) -> list[str]:
    """List further addresses on the same line, with commas or semicolons between them."""
    listed: list[str] = []
    while (match := plain_forms.NEXT_IN_LIST.match(line, end)) and len(listed) < RECIPIENTS_LIMIT:
        listed.append(match[1])
        end = match.end(1)
    return listed


def _reason_below(signs: ReportSigns, address: str) -> str:
    wanted = address.lower()
    for number, line in enumerate(signs.lines):
        place = line.lower().find(wanted)
        if place != -1:
            return _reason_at(signs, number, line[place + len(wanted) :])
    return signs.telling


def _reason_at(signs: ReportSigns, number: int, behind: str) -> str:
    """Return the text after and below the address; else the most telling line of the text."""
    near = " ".join([behind.strip(" \t:>)\"'.,"), *_paragraph(signs.lines, number + 1)]).strip()
    if reasons.is_telling(near):
        return near
    after = " ".join(_paragraph(signs.lines, number + 1, skip_blank=True)).strip()
    return after if reasons.is_telling(after) else signs.telling or near or after


def _paragraph(lines: list[str], start: int, *, skip_blank: bool = False) -> Iterator[str]:
    taken = 0
    for line in lines[start : start + 2 * REASON_LINES]:
        if line.strip():
            taken += 1
            yield line.strip()
        elif taken or not skip_blank:
            return
        if taken == REASON_LINES:
            return


def _more_exact(first: str, second: str) -> str:
    """Return the more exact reason. Newer servers name a recipient twice: in words, then with the code."""
    if not first or (not _is_coded(first) and _is_coded(second)):
        return f"{first} {second}".strip()
    return first


def _is_coded(text: str) -> bool:
    return bool(reasons.found_status(text)) or (reasons.reply_code(text) or 0) >= 400


def _reported(action: str, named: Named, signs: ReportSigns) -> tuple[RecipientReport, ...]:
    """Return the reports. With one recipient, a code anywhere in the text is about it."""
    if len(named) == 1:
        named = {address: _more_exact(reason, signs.coded) for address, reason in named.items()}
    words = {address: _one_line(reason) for address, reason in named.items()}
    return tuple(
        RecipientReport(address, action, reasons.found_status(reason), reason)
        for address, reason in words.items()
    )


def _one_line(reason: str) -> str:
    return " ".join(reason.split())[: reasons.DIAGNOSTIC_LIMIT]
