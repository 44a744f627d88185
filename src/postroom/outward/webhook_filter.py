"""Whether a webhook gets an event: it is not over, its key is valid, and its search matches the message."""

from postroom.accounts import keys
from postroom.accounts.permissions import MANAGE
from postroom.events.event_log import Event
from postroom.events.webhooks import Webhook
from postroom.mailbox import messages
from postroom.mailbox.search import contents, message_facts
from postroom.storage.database import Tx
from postroom_mail.search import query as grammar
from postroom_mail.search import snippet


def is_over(tx: Tx, webhook: Webhook, now: int) -> bool:
    """Return whether a subscription has ended: with its time, its key, or the key's permission."""
    if webhook.expires_at is not None and webhook.expires_at <= now:
        return True
    caller = None if webhook.key_id is None else keys.find_caller_by_id(tx, webhook.key_id, now)
    return webhook.key_id is not None and (caller is None or MANAGE not in caller.permissions)


def matches(tx: Tx, webhook: Webhook, event: Event) -> bool:
    """Return whether the examined message matches. An event about no message matches no search."""
    if not webhook.query:
        return True
    message = messages.find(tx, event.message_id) if event.message_id else None
    if message is None or message.inbox_id != event.inbox_id:
        return False
    asked = grammar.parse(webhook.query)
    facts = message_facts.read_facts(tx, [message.id], asks_header=True).get(message.id)
    if facts is None or not snippet.holds(asked, contents.read(tx, message)):
        return False
    return message_facts.meets_all(tx, facts, asked.filters)
