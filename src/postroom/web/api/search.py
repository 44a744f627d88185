"""Search over REST."""

import time

from msgspec import Raw

from postroom.errors import Unavailable
from postroom.mailbox import inboxes
from postroom.mailbox.search import message_search
from postroom.mailbox.search.message_search import ResultPage
from postroom.operations import assignments
from postroom.resources import Overdue
from postroom.web.call import Call, Tx
from postroom.web.interface import answer_shapes
from postroom.web.interface.bodies.body import SearchQuery
from postroom_mail.search.query import Query

SECONDS = 2.0


async def search_messages(call: Call, query: SearchQuery) -> answer_shapes.SearchPage:
    """Find messages by their words, in subject, addresses, text and files, newest first"""
    asked = message_search.parse(query.q)
    ends = time.monotonic() + SECONDS
    try:
        page = await call.resources.db.read_long(find_page, SECONDS, call, query, asked, ends)
    except Overdue:
        raise Unavailable(
            "This search takes too long. Narrow it: give an inbox, a longer word, or days with after: and"
            " before:.",
            retry_after=1,
        ) from None
    found = [answer_shapes.ShownResult(Raw(each.message), each.matched, each.snippet) for each in page.found]
    return answer_shapes.SearchPage(found, page.next)


def find_page(tx: Tx, call: Call, query: SearchQuery, asked: Query, ends: float) -> ResultPage:
    scope = inboxes.narrow(tx, call.scope, query.inbox_id, query.pod_id)
    if scope is None:
        return ResultPage([], None)
    asked = assignments.with_assignees(tx, call.caller, asked)
    question = message_search.ask(tx, scope, asked, call.resources.config.domain, query.include is not None)
    return message_search.find(
        tx, question, query.cursor, query.limit, call.links(), lambda: time.monotonic() > ends
    )
