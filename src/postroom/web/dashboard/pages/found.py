"""Search results. A search is a URL, so that it can be saved and shared."""

from functools import partial

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.fields import explain
from postroom.mailbox import inboxes, threads
from postroom.operations import junk
from postroom.operations.pods import (
    AccountChange,
    SavedSearch,
    SavedSearches,
    change_account,
    get_account,
)
from postroom.operations.search import SearchPage, SearchQuery
from postroom.queue import deliveries
from postroom.web.api import search
from postroom.web.call import Tx
from postroom.web.dashboard import delayed_operations, undo
from postroom.web.dashboard.display.people import name_of
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.forms import own_path
from postroom.web.dashboard.page_context import PageContext, go

JUNK = "is:junk"
# The most common searches: the word on the chip, and its query.
CHIPS = (
    ("Sent", "is:sent"),
    ("Failed", "is:failed"),
    ("Held", "is:held"),
    ("Flagged", "is:flagged"),
    ("Attachments", "has:attachment"),
    ("Blocked", "is:blocked"),
    ("Junk", JUNK),
)
CATEGORIES = (
    ("People", "category:personal"),
    ("Automated", "category:automated"),
    ("Marketing", "category:marketing"),
    ("Bounces", "category:bounce"),
)
JUNK_TOGETHER = 100
FILTERS = ("is:", "assignee:", "has:", "in:", "category:", "label:", "before:", "after:", "OR")
EXAMPLES = (
    ("invoice from:billing", "a word and a sender"),
    ('"purchase order" -draft', "a phrase, without a word"),
    ("is:unread has:attachment", "unread with attachments"),
    ("in:support after:2026-11-01", "an inbox and a date"),
    ("refund OR return*", "either word, or a prefix"),
    ("is:failed", "emails that failed"),
    ("assignee:none is:unread", "unread threads that nobody has"),
    ("is:snoozed OR is:done", "threads set aside or finished"),
    ("is:blocked", "emails that a policy blocked"),
)


class FoundQuery(Struct, rename="camel", frozen=True):
    q: str = ""
    inbox_id: str = ""
    pod_id: str = ""
    cursor: str = ""


class SavingForm(Struct, rename="camel", frozen=True):
    name: str
    q: str
    inbox_id: str = ""
    pod_id: str = ""


class JunkForm(Struct, frozen=True):
    ids: list[str] = []
    back: str = "/app/search?q=is:junk"


class RemovalForm(Struct, frozen=True):
    name: str
    back: str = "/app/mail"


async def show_found(context: PageContext, query: FoundQuery) -> Response:
    found, wrong = SearchPage([], None), ""
    if query.q.strip():
        asked = SearchQuery(
            query.q, query.inbox_id or None, query.pod_id or None, cursor=query.cursor or None
        )
        try:
            found = await search.search_messages(context.call, asked)
        except BadRequest as error:
            wrong = error.message
    results = [(msgspec.json.decode(each.message), each.snippet) for each in found.data]
    failed = [message["id"] for message, _ in results if message["status"] == "failed"]
    thread_ids = sorted({message["threadId"] for message, _ in results if message["threadId"]})
    inbox_ids = sorted({message["inboxId"] for message, _ in results})
    return await context.show(
        "found.html",
        "mail",
        title=query.q or "Search",
        query=query,
        q=query.q,
        place={"inboxId": query.inbox_id, "podId": query.pod_id, "q": query.q, "cursor": query.cursor},
        results=results,
        bounced=await context.read(deliveries.bounced_of, failed),
        unread=await context.read(list_unread, context, thread_ids),
        next=found.next,
        wrong=wrong,
        examples=EXAMPLES,
        is_junk=query.q.strip() == JUNK,
        name_of=name_of,
        highlight=partial(highlight, words_of(query.q)),
        addresses=await context.read(inboxes.addresses_of, inbox_ids),
        saved=await saved_searches(context),
        chips=CHIPS,
        categories=CATEGORIES,
    )


async def mark_not_junk(context: PageContext, body: JunkForm) -> Response:
    """Mark the ticked messages as not junk. One that has left Junk meanwhile stays where it is."""
    for message_id in body.ids[:JUNK_TOGETHER]:
        await context.run(junk.mark_not_junk, message_id=message_id)
    said = f"{len(body.ids[:JUNK_TOGETHER])} are not junk: they arrived as if they were new."
    return go(own_path(body.back), said)


def list_unread(tx: Tx, context: PageContext, thread_ids: list[str]) -> set[str]:
    return {each.id for each in threads.list_by_ids(tx, context.call.scope, thread_ids) if not each.is_read}


async def saved_searches(context: PageContext) -> list[SavedSearch]:
    """Return those of the account, for persons who reach all of it."""
    return (await context.run(get_account)).saved_searches if context.call.scope.is_account else []


async def save_search(context: PageContext, body: SavingForm) -> Response:
    """Replaces one of the same name."""
    kept = [each for each in await saved_searches(context) if each.name != body.name]
    wanted = [*kept, SavedSearch(body.name.strip(), body.q)]
    await context.run(change_account, body=AccountChange(saved_searches=read_searches(wanted)))
    place = {"inboxId": body.inbox_id, "podId": body.pod_id}
    return go(link("/app/search", q=body.q, **place), f"Saved as {body.name.strip()}.")


remove_search = undo.delayed(
    delayed_operations.remove_search,
    lambda form: own_path(form.back),
    "Deleting the saved search {body.name} in {seconds} seconds.",
    RemovalForm,
    lambda form: {"name": form.name},
)


def read_searches(wanted: list[SavedSearch]) -> list[SavedSearch]:
    """Validates values that were not read from JSON."""
    try:
        return msgspec.convert(msgspec.to_builtins(wanted), SavedSearches)
    except msgspec.ValidationError as error:
        raise explain(error, SavedSearches) from None


def words_of(q: str) -> list[str]:
    """Return the words to mark in a result, without filters and negated ones."""
    parts = [part.strip('"*') for part in q.split() if not part.startswith("-")]
    return [part.partition(":")[2].strip('"') or part for part in parts if not part.startswith(FILTERS)]


def highlight(words: list[str], text: str) -> list[tuple[str, bool]]:
    """Return the text in pieces, each with whether it is the first occurrence of a searched word."""
    lowered, places = text.lower(), list[tuple[int, int]]()
    for word in words:
        at = lowered.find(word.lower()) if word and len(lowered) == len(text) else -1
        if at >= 0 and all(at >= end or at + len(word) <= start for start, end in places):
            places.append((at, at + len(word)))
    pieces, reached = list[tuple[str, bool]](), 0
    for start, end in sorted(places):
        pieces += [(text[reached:start], False), (text[start:end], True)]
        reached = end
    return [*pieces, (text[reached:], False)]
