"""What the first start makes: secrets of the server, an account with its key, the key that signs mail."""

from collections.abc import Callable

from postroom import pools
from postroom.accounts import accounts, domains, keys, secret_values
from postroom.accounts.accounts import Account
from postroom.config import Config
from postroom.events import webhooks
from postroom.mail import dkim
from postroom.mailbox import attachments
from postroom.storage.database import Database, Tx

FIRST_ACCOUNT = "default"
RETURN_PATH = "return-path"


def make_first_account(tx: Tx, config: Config, now: int) -> str | None:
    """On an empty database: an account and its key. The token is returned this once."""
    secret_values.make_missing(tx, attachments.LINKS, RETURN_PATH)
    if accounts.is_any(tx):
        return None
    account: Account = accounts.add(tx, FIRST_ACCOUNT, config.plan, now)
    token = config.api_key or keys.new_token()
    keys.add(tx, account.id, None, "first key", token, now)
    if config.webhook_url:
        secret = config.webhook_secret or None
        webhooks.put(tx, account.id, account.id, config.webhook_url, None, secret, now)
    return token


async def make_service_key(
    db: Database, domain: str, make_key: Callable[[], bytes] = dkim.generate_key
) -> None:
    if await db.read(domains.find_key, domains.SERVICE, domain) is None:
        private_key = await pools.KEYS.run(make_key)
        await db.write(domains.add_key, domains.SERVICE, domain, private_key)
