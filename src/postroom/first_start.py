"""What the first start creates: secrets of the server, an account with its key, and the signing key."""

from collections.abc import Callable

from msgspec import Struct

from postroom.accounts import accounts, dkim_keys, domains, keys, secret_values, sessions, signing_keys
from postroom.accounts.accounts import Account
from postroom.config import Config
from postroom.events import web_push, webhooks
from postroom.inward.review_answers import REVIEW
from postroom.mailbox import attachments
from postroom.processes import pools
from postroom.storage.database import Database, Tx
from postroom_mail.authentication import dkim


class FirstAccount(Struct, frozen=True):
    """The credentials of the first account, shown only once."""

    token: str
    link: str  # to sign in to the pages


def make_first_account(tx: Tx, config: Config, now: int) -> FirstAccount | None:
    """Make an account, its key and a link for its owner, on an empty database."""
    own = (secret_values.SYSTEM_EMAIL, secret_values.ORIGINS, secret_values.RETURN_PATH, REVIEW, web_push.OWN)
    secret_values.make_missing(tx, attachments.LINKS, *own)
    signing_keys.keep_current(tx, now)
    if accounts.is_any(tx):
        return None
    account: Account = accounts.add(tx, accounts.FIRST, config.plan, now)
    token = config.api_key or keys.new_token()
    keys.add(tx, account.id, None, "first key", token, now)
    if config.webhook_url:
        secret = config.webhook_secret or None
        webhooks.put(tx, account.id, account.id, config.webhook_url, None, secret, now)
    link = sessions.new_token()
    sessions.add_link(tx, account.id, True, link, now)
    return FirstAccount(token, link)


async def make_service_key(
    db: Database, domain: str, now: int, make_key: Callable[[], bytes] = dkim.generate_key
) -> None:
    if not await db.read(dkim_keys.list_of, domains.SERVICE, domain):
        private_key = await pools.KEYS.run(make_key)
        await db.write(dkim_keys.add_first, domains.SERVICE, domain, private_key, now)
