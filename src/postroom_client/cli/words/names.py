"""Find the id of an inbox, a domain or a key by its name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from postroom_client.limits import LONGEST_PAGE

Ask = Callable[[Any], Any]  # makes a call

SHOWN = 5  # ids of those that have the same name


@dataclass(frozen=True)
class Noun:
    """`called` returns the names of one of them, the most specific first."""

    prefix: str
    word: str
    call: str  # the list of them
    command: str  # that shows the list
    called: Callable[[Any], Sequence[str | None]]
    takes_others: bool = False  # the interface itself knows another name
    by: str = "id or name"


NOUNS = {
    "inbox_id": Noun(
        "inb_",
        "inbox",
        "list_inboxes",
        "inboxes list",
        lambda each: (each.address, each.address.partition("@")[0], each.display_name),
    ),
    "domain_id": Noun("dom_", "domain", "list_domains", "domains list", lambda each: (each.domain,)),
    "pod_id": Noun(
        "pod_", "pod", "list_pods", "pods list", lambda each: (each.client_id, each.name), takes_others=True
    ),
    "key_id": Noun("key_", "key", "list_keys", "keys list", lambda each: (each.name,)),
    "template_id": Noun("tpl_", "template", "list_templates", "templates list", lambda each: (each.name,)),
    "user_id": Noun(
        "usr_",
        "user",
        "list_users",
        "users list",
        lambda each: (each.email, each.name),
        by="id, address or name",
    ),
    "webhook_id": Noun(
        "whk_", "webhook", "list_webhooks", "webhooks list", lambda each: (each.url,), by="id or URL"
    ),
    "connection_id": Noun(
        "con_",
        "connection",
        "list_connections",
        "connections list",
        lambda each: (each.provider,),
        by="id or provider",
    ),
}

LISTED = ("inbox_id", "pod_id")  # options that take several are called by the plural


def find(ask: Ask, parameter: str, given: str) -> str:
    """Return the id. If several have the name, choose none."""
    from postroom_client.errors import BadRequest, NotFound, PostroomError

    noun = NOUNS[parameter]
    if given.startswith(noun.prefix):
        return given
    try:
        found = _called(ask, noun, given)
    except PostroomError as error:
        if noun.takes_others and error.code == "forbidden":
            return given  # this key may list none; the server knows whether it reaches one
        raise
    if len(found) > 1:
        ids = ", ".join(found[:SHOWN])
        raise BadRequest(f"{len(found)} of them are called '{given}': {ids}. Give the id.")
    if found:
        return found[0]
    if noun.takes_others:
        return given
    raise NotFound(f"There is no {noun.word} '{given}'. See: postroom {noun.command}")


def _called(ask: Ask, noun: Noun, given: str) -> list[str]:
    """Return the ids of those that are called this by their most specific name."""
    wanted = given.casefold()
    found: dict[int, list[str]] = {}
    for each in _all(ask, noun):
        called = [(name or "").casefold() for name in noun.called(each)]
        if wanted in called:
            found.setdefault(called.index(wanted), []).append(each.id)
            if called.index(wanted) == 0 and "@" in wanted:
                return [each.id]  # an address is unique
    return found[min(found)] if found else []


def _all(ask: Ask, noun: Noun) -> Iterator[Any]:
    from postroom_client.calls import calls, shortcuts

    describe = getattr(shortcuts, noun.call, None) or getattr(calls, noun.call)
    seen = 0
    while True:
        page = ask(describe(limit=LONGEST_PAGE, offset=seen))
        yield from page.data
        seen += len(page.data)
        if not page.data or seen >= page.total:
            return
