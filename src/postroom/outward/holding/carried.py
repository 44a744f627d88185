"""The values that a send carries in what is new in it: texts, links, files, appointments and recipients."""

from collections.abc import Iterable, Iterator
from itertools import islice

from postroom.outward.holding.own_links import links_in
from postroom.outward.send_stages import ComposedMail, Context, Order
from postroom.processes import pools
from postroom_mail.html.text import html_to_text
from postroom_mail.mime.address import parse_list
from postroom_mail.screening import values
from postroom_mail.screening.disguises import text_in, unpacked
from postroom_mail.screening.values import Found
from postroom_mail.writing.invitation import Invitation
from postroom_mail.writing.invitation_answer import CalendarAnswer

FILE_CHARACTERS = 1_000_000  # of all files of a send that are looked through


async def find_carried(order: Order, composed: ComposedMail, around: Context, is_little: bool) -> Found:
    """Return what it carries; in a thread, unless that takes no longer than the way there."""
    if is_little:
        return carried(order, composed, around)
    return await pools.COMPOSING.run(carried, order, composed, around)


def carried(order: Order, composed: ComposedMail, around: Context) -> Found:
    """Return the values in what is new in a send; a whole message that it passes on is none of them."""
    if order.redirect_of is not None:
        return recipients_of(order, composed)
    html = composed.own_html or ""
    texts = [composed.own_text, html, html_to_text(html) if html else "", words_of(order)]
    short = [order.subject, order.reply_to or "", *order.headers.values()]
    short += [part for name in order.headers for part in (name, name.partition("-")[2])]
    people = [*order.to, *composed.cc, *order.bcc, *parse_list(order.reply_to or "")]
    if isinstance(order.calendar, Invitation):
        addressed = {each.address for each in people}
        people += order.calendar.attendees
        short += [order.calendar.uid]
        short += [each.address for each in order.calendar.attendees if each.address not in addressed]
    elif isinstance(order.calendar, CalendarAnswer):
        texts += [order.calendar.comment]
    short += [composed.draft.from_name, *(each.name for each in people)]
    short += [part for name in ids_named(composed, around) for part in parts_of(name)]
    found = values.carried_by(filter(None, (*texts, values.apart(short))))
    links = islice(links_in((*texts, *short)), values.MOST_CARRIED)
    found = {each.key: each for each in links} | found
    for each in people:
        found = {**values.inside(each.address), **found}
    found |= values.carried_by(file_texts(order)) if order.files else {}
    for file in order.files:
        held = values.file(file.content, file.filename)
        found[held.key] = held
    return found | recipients_of(order, composed)


def ids_named(composed: ComposedMail, around: Context) -> Iterator[str]:
    """Yield what a sender can write: the Message-ID of a mail client, and ids that were not received."""
    draft = composed.draft
    own = draft.message_id if composed.is_submitted else ""
    for name in filter(None, dict.fromkeys((own, *draft.references, draft.in_reply_to or ""))):
        if not around.rfc_ids.get(name, False):
            yield name


def parts_of(message_id: str) -> tuple[str, str]:
    local, _, domain = message_id.strip("<>").rpartition("@")
    return local, domain.replace(".", " ")


def words_of(order: Order) -> str:
    return getattr(order.calendar, "words", "")


def recipients_of(order: Order, composed: ComposedMail) -> Found:
    found = (values.address(each.address) for each in (*order.to, *composed.cc, *order.bcc))
    return {value.key: value for value in found}


def file_texts(order: Order) -> Iterable[str]:
    """Names and contents of files, with what archives hold, as far as they are text."""
    left = FILE_CHARACTERS
    for file in order.files:
        yield file.filename
        yield file.content_type
        for content in (file.content, *unpacked(file.content)):
            text = text_in(content[:left])
            left -= len(text)
            yield text
