"""Searching messages: what is asked, and a page of what was found."""

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from postroom.accounts.keys import Caller
from postroom.config import Config
from postroom.fields import InboxFilter, Limit, PodFilter
from postroom.mailbox import inboxes
from postroom.mailbox.message_json import Links
from postroom.mailbox.search import message_search
from postroom.operations import assignments
from postroom.operations.messages import RawMessage
from postroom.storage.database import Tx
from postroom_mail.search.query import Query


class SearchQuery(Struct, frozen=True):
    q: Annotated[
        str,
        Meta(
            description='Words, "phrases", -not, a OR b, prefixes*, from: to: subject: label: in: has: is:'
            " before: after:",
            examples=["invoice from:billing after:2026-01-01", '"purchase order" -draft has:attachment'],
        ),
    ]
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    pod_id: PodFilter | None = field(default=None, name="podId")
    limit: Limit = 20
    cursor: Annotated[str, Meta(description="`next` of the previous page.")] | None = None
    include: (
        Annotated[Literal["junk", "trash"], Meta(description="Also what is in Junk, or what is in Trash.")]
        | None
    ) = None


class ShownResult(Struct, rename="camel", frozen=True):
    """A found message, the parts that matched, and a snippet of the first."""

    message: RawMessage
    matched: list[Annotated[str, Meta(description="text, file, subject, filename, from or to")]]
    snippet: str


class SearchPage(Struct, rename="camel", frozen=True):
    data: list[ShownResult]
    next: str | None


def search_messages(
    tx: Tx,
    caller: Caller,
    query: SearchQuery,
    asked: Query,
    config: Config,
    links: Links,
    is_over: Callable[[], bool],
) -> SearchPage:
    """Return a page of the messages that match `asked`, the parsed `query.q`."""
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    if scope is None:
        return SearchPage([], None)
    asked = assignments.with_assignees(tx, caller, asked)
    question = message_search.ask(tx, scope, asked, config.domain, query.include)
    page = message_search.find(tx, question, query.cursor, query.limit, links, is_over)
    found = [ShownResult(Raw(each.message), each.matched, each.snippet) for each in page.found]
    return SearchPage(found, page.next)
