"""Facts about a whole mail for the rules: read before the transaction, since it may take a second."""

from msgspec import Struct

from postroom.accounts import permissions
from postroom.accounts.keys import Caller
from postroom.clock import MINUTE
from postroom.mailbox.documents import Document
from postroom.mailbox.messages import OUTBOUND
from postroom.outward.event_changes import EventChange
from postroom.outward.send_stages import ComposedMail, Context, Order, RuleFacts
from postroom_mail.screening.canary import holds_token
from postroom_mail.screening.mentions import (
    calendar_mentions_a_link,
    files_mention_a_link,
    holds_a_file,
    mentions_a_link,
)
from postroom_mail.writing import passed_on
from postroom_mail.writing.content_hash import content_hash
from postroom_mail.writing.invitation import Invitation
from postroom_mail.writing.sealed import ENCRYPTED

MOST_GUARDED = 10_000
REMEMBERED_FOR = 10 * MINUTE


class Unjudged(Exception):
    """A rule needs facts that only reading the whole mail gives. Nothing was changed."""


def judge(order: Order, around: Context, composed: ComposedMail) -> RuleFacts:
    """Of a signed or encrypted email all is assumed that a rule could ask for: its parts are not all read."""
    own = bool(composed.seal) or has_links(order, composed)
    quoted = quoted_of_ours(around)
    whole = composed.draft
    return RuleFacts(
        content_hash=content_hash(composed.raw, tuple(map(str, order.bcc))),
        has_links=own,
        has_links_with_quote=own if quoted is None else own or mentions_a_link(whole.text, whole.html),
        has_canary=has_canary(around, composed),
        has_files=bool(composed.seal)
        or holds_a_file(composed.own_text, composed.own_html)
        or (quoted is not None and holds_a_file(whole.text, whole.html)),
    )


def has_links(order: Order, composed: ComposedMail) -> bool:
    """In its texts, its appointment, and files that mail clients show with them."""
    if mentions_a_link(f"{composed.own_text}{words_of(order)}", composed.own_html):
        return True
    if order.redirect_of is not None:
        return passed_on.mentions_a_link(composed.raw)
    written = composed.draft.calendar if order.calendar is None else None
    if written is not None and calendar_mentions_a_link(written.content):
        return True
    return files_mention_a_link((file.content_type, file.filename, file.content) for file in order.files)


def has_canary(around: Context, composed: ComposedMail) -> bool:
    token = around.inbox.canary
    return token is not None and (composed.seal == ENCRYPTED or holds_token(composed.raw, token))


def words_of(order: Order) -> str:
    """The text of an invitation, next to that of its mail."""
    return f"\n{order.calendar.words}" if isinstance(order.calendar, Invitation | EventChange) else ""


def quoted_of_ours(around: Context) -> Document | None:
    """The quoted mail, if it is one of ours, which may never have been sent, or imported by anyone here."""
    quoted = around.forwarded or around.previous
    is_ours = quoted is not None and (quoted.direction == OUTBOUND or around.quotes_imported)
    return quoted if is_ours else None


class Guarded(Struct):
    """Inboxes whose sends were recently under a rule of account or pod, or paused."""

    until: dict[str, int] = {}

    def note(self, inbox_id: str, now: int) -> None:
        self.until.pop(inbox_id, None)
        if len(self.until) >= MOST_GUARDED:
            del self.until[next(iter(self.until))]
        self.until[inbox_id] = now + REMEMBERED_FOR

    def includes(self, inbox_id: str, now: int) -> bool:
        return self.until.get(inbox_id, 0) > now


def is_foreseen(caller: Caller, order: Order, around: Context) -> bool:
    """Return whether the transaction is certain to need the facts."""
    inbox = around.inbox
    is_ruled = caller.approval is not None or inbox.approval is not None or inbox.canary is not None
    is_later = order.send_at is not None or order.undo_seconds > 0
    return is_ruled or is_later or permissions.SEND not in caller.permissions
