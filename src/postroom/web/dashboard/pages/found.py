"""What a search found. A search is an address, so that it can be kept and sent to somebody."""

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.web.api.mailbox import search
from postroom.web.dashboard.desk import Desk
from postroom.web.dashboard.pages.mail import name_of
from postroom.web.interface.bodies.finding_body import SearchQuery
from postroom.web.interface.shapes.finding_shapes import SearchPage

EXAMPLES = (
    ("invoice from:billing", "words, and who wrote"),
    ('"purchase order" -draft', "a phrase, and what is not in it"),
    ("is:unread has:attachment", "unread, with files"),
    ("in:support after:2026-11-01", "an inbox, and since when"),
    ("refund OR return*", "either, and every beginning"),
    ("is:blocked", "what a policy kept out"),
)


class FoundQuery(Struct, rename="camel", frozen=True):
    q: str = ""
    inbox_id: str = ""
    cursor: str = ""


async def show_found(desk: Desk, query: FoundQuery) -> Response:
    found, wrong = SearchPage([], None), ""
    if query.q.strip():
        asked = SearchQuery(query.q, query.inbox_id or None, cursor=query.cursor or None)
        try:
            found = await search.search_messages(desk.call, asked)
        except BadRequest as error:
            wrong = error.message
    results = [(msgspec.json.decode(each.message), each.matched, each.snippet) for each in found.data]
    return await desk.show(
        "found.html",
        "mail",
        title=query.q or "Search",
        query=query,
        q=query.q,
        results=results,
        next=found.next,
        wrong=wrong,
        examples=EXAMPLES,
        name_of=name_of,
    )
