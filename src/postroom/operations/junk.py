"""Operations on junk: say that a message is junk or is not, which moves it and teaches the filter."""

from typing import Annotated

from msgspec import Meta, Struct

from postroom.accounts.keys import Caller
from postroom.config import Config
from postroom.inward.junk import examples
from postroom.mailbox import inboxes, messages
from postroom.mailbox.message_json import Links
from postroom.operations.folders import teaching
from postroom.operations.messages import RawMessage, show_message
from postroom.storage.database import Tx


class JunkExamples(Struct, frozen=True):
    """What the people of an account have taught its junk filter."""

    junk: Annotated[int, Meta(description="Messages that somebody called junk.")]
    wanted: Annotated[int, Meta(description="Messages that somebody called not junk.")]
    waiting: Annotated[int, Meta(description="Of both, how many the filter has yet to learn.")]


def mark_junk(tx: Tx, caller: Caller, message_id: str, config: Config, links: Links, now: int) -> RawMessage:
    """Move a received message to Junk, and teach the filter"""
    inbox = inboxes.lock(tx, messages.get(tx, caller.scope, message_id).inbox_id)
    teaching.teach(
        tx, caller, inbox, [messages.get(tx, caller.scope, message_id)], True, config.base_url, now
    )
    return show_message(tx, caller.scope, message_id, links)


def mark_not_junk(
    tx: Tx, caller: Caller, message_id: str, config: Config, links: Links, now: int
) -> RawMessage:
    """Let a message out of Junk as if it had just arrived, and teach the filter"""
    inbox = inboxes.lock(tx, messages.get(tx, caller.scope, message_id).inbox_id)
    teaching.teach(
        tx, caller, inbox, [messages.get(tx, caller.scope, message_id)], False, config.base_url, now
    )
    return show_message(tx, caller.scope, message_id, links)


def get_junk_examples(tx: Tx, caller: Caller) -> JunkExamples:
    """Count what the account's people have taught the junk filter"""
    return JunkExamples(**examples.count(tx, caller.account_id))
