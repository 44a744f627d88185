"""Says at the end of what an agent writes that it did, as its inbox asks for."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.accounts.rules import disclosure
from postroom.accounts.rules.disclosure import READY
from postroom.errors import BadRequest, DraftChanged
from postroom.outward.holding.approval_rules import InboxRules
from postroom.outward.send_stages import Closing, Context, Order, Ready
from postroom.storage.database import Tx
from postroom_mail.writing import disclosure as words


class Undisclosed(DraftChanged):
    """The settings ask for another line than the email was composed with: compose it again."""


class Disclosing(Struct, frozen=True):
    """Inboxes that ask for a line, or did: their sends are composed with what the database says."""

    known: set[str] = set()

    def add(self, inbox_id: str) -> None:
        if len(self.known) >= 10_000:
            self.known.clear()
        self.known.add(inbox_id)


ASKING = Disclosing()


def with_closing(tx: Tx, caller: Caller, order: Order, around: Context) -> Context:
    """Return the context with the line and the header field that the email gets."""
    stored = disclosure.in_force(tx, around.inbox.id)
    wanted = disclosure.decode(stored)
    if wanted is None or not is_of_agent(caller, order):
        return replace(around, disclosure=stored)
    reviewer = caller.session_name if caller.is_person else ""
    said = around.last_inbound.reply_text if around.last_inbound is not None else order.body
    language = wanted.language or words.guess_language(said)
    own = None if wanted.text == READY else wanted.text
    line = "" if wanted.text is None else words.line_for(own, language, reviewer)
    headers = {words.HEADER: words.header_value(reviewer)} if wanted.header else {}
    return replace(around, disclosure=stored, closing=Closing(line, headers))


def is_of_agent(caller: Caller, order: Order) -> bool:
    """Return whether an agent wrote it.

    A person may send an agent's draft, and edit it until it is the person's.
    """
    if not caller.is_person:
        return True
    return order.agent_text is not None and words.is_mostly_kept(
        order.agent_text, f"{order.body} {order.body_html or ''}"
    )


def close(text: str, html: str | None, closing: Closing | None) -> tuple[str, str | None]:
    """Return both forms of the text with the line at their end. BadRequest if the HTML would hide it."""
    if closing is None or not closing.line:
        return text, html
    whole = None if html is None else words.added_to_html(html, closing.line)
    if whole is not None and not words.is_seen_in(whole, closing.line):
        raise BadRequest(
            "bodyHtml would hide the line that the setting disclosure adds at its end. Close what is open"
            " there (a comment, a hidden element), and hide no element by its name.",
            field="bodyHtml",
        )
    return words.added_to_text(text, closing.line), whole


def require_current(new: Sequence[Ready], rules_of: Mapping[str, InboxRules]) -> None:
    """Raise Undisclosed if an email was composed by other settings than those that apply now."""
    for each in new:
        order, around = each.submission.order, each.submission.around
        if order.redirect_of is None and rules_of[each.inbox_id].disclosure != around.disclosure:
            ASKING.add(each.inbox_id)
            raise Undisclosed("The setting disclosure was changed meanwhile. Send it again.")
