"""Search messages over REST, for at most two seconds."""

import time

from postroom.errors import Unavailable
from postroom.mailbox.search import message_search
from postroom.operations import search
from postroom.operations.search import SearchPage, SearchQuery
from postroom.resources import Overdue
from postroom.web.call import Call

SECONDS = 2.0


async def search_messages(call: Call, query: SearchQuery) -> SearchPage:
    """Find messages by their words, in subject, addresses, text and files, newest first"""
    asked, ends = message_search.parse(query.q), time.monotonic() + SECONDS
    config, links = call.resources.config, call.links()
    try:
        return await call.resources.db.read_long(
            search.search_messages,
            SECONDS,
            call.caller,
            query,
            asked,
            config,
            links,
            lambda: time.monotonic() > ends,
        )
    except Overdue:
        raise Unavailable(
            "This search takes too long. Narrow it: give an inbox, a longer word, or days with after: and"
            " before:.",
            retry_after=1,
        ) from None
