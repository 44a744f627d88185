"""Signs in to an external mailbox: its address checked, by password or OAuth token."""

from ipaddress import ip_address
from urllib.parse import urlencode

import msgspec

from postroom.config import allows_private_targets
from postroom.external_mailboxes.connections import Connection
from postroom.external_mailboxes.fetching import Fetcher, FetchError
from postroom.external_mailboxes.imap_client import TLS_PORT, ImapClient, MailServerAddress, open_client
from postroom.external_mailboxes.imap_wire import ImapError
from postroom.net import allowed_target
from postroom.resources import Resources
from postroom_mail.authentication.lookup import DnsTemporary

TOKEN_MARGIN = 60_000  # of its life, in milliseconds


class OAuthTokens:
    """Access tokens, each requested once and cached until shortly before it expires."""

    def __init__(self, resources: Resources, fetcher: Fetcher) -> None:
        self._resources = resources
        self._fetcher = fetcher
        self._known: dict[str, tuple[str, int]] = {}

    async def get(self, connection: Connection) -> str:
        token, ends_at = self._known.get(connection.id, ("", 0))
        now = self._resources.now()
        if now < ends_at - TOKEN_MARGIN:
            return token
        token, seconds = await self._ask(connection.hidden["oauth"])
        self._known[connection.id] = token, now + seconds * 1000
        return token

    async def _ask(self, oauth: dict[str, str]) -> tuple[str, int]:
        form = {
            "grant_type": "refresh_token",
            "client_id": oauth["clientId"],
            "client_secret": oauth["clientSecret"],
            "refresh_token": oauth["refreshToken"],
        }
        status, found = await ask_for_tokens(self._fetcher, oauth["tokenUrl"], form)
        token, seconds = found.get("access_token"), found.get("expires_in", 0)
        if status != 200 or not isinstance(token, str) or "\1" in token:
            raise ImapError(f"The refresh token was refused: {reason_of(status, found)}", is_refused=True)
        return token, seconds if isinstance(seconds, int) else 0


async def ask_for_tokens(
    fetcher: Fetcher, token_url: str, form: dict[str, str]
) -> tuple[int, dict[str, object]]:
    """Return the status and content of the answer (RFC 6749, 5); raises ImapError."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    try:
        answer = await fetcher.fetch("POST", token_url, headers, urlencode(form).encode())
        return answer.status, msgspec.json.decode(answer.body, type=dict[str, object])
    except (FetchError, msgspec.MsgspecError) as error:
        raise ImapError(f"No token from {token_url}: {error}") from None


def reason_of(status: int, found: dict[str, object]) -> str:
    return str(found.get("error_description") or found.get("error") or status)[:300]


async def find_address(resources: Resources, host: str, port: int) -> MailServerAddress:
    """Find the address, checked like the target of a webhook."""
    try:
        found = await allowed_target.resolve_target(
            resources.resolver, f"https://{host}/", allows_private_targets(resources.config)
        )
    except allowed_target.ForbiddenTarget as error:
        raise ImapError(f"{host} cannot be used: {error.reason}.") from None
    except DnsTemporary:
        raise ImapError(f"The DNS gave no answer for {host}.") from None
    return MailServerAddress(found.host, found.ips, port, all(ip_address(ip).is_loopback for ip in found.ips))


async def sign_in(resources: Resources, tokens: OAuthTokens, connection: Connection) -> ImapClient:
    settings = connection.settings
    address = await find_address(resources, settings["host"], settings.get("port", TLS_PORT))
    client = await open_client(address)
    try:
        if "oauth" in connection.hidden:
            await client.log_in_with_token(settings["username"], await tokens.get(connection))
        else:
            await client.log_in(settings["username"], connection.hidden.get("password", ""))
    except BaseException:
        client.close()
        raise
    return client
