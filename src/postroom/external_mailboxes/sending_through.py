"""Sends mail through an external mailbox: signed in as it requires, with a copy in its Sent folder."""

from postroom import log
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.connections import WayOut
from postroom.external_mailboxes.imap_wire import ImapError
from postroom.external_mailboxes.mailbox_access import OAuthTokens, sign_in
from postroom.resources import Resources

# These keep a copy of all mail sent through them.
KEEP_THEIR_OWN = ("gmail.com", "googlemail.com", "office365.com", "outlook.com")


class SendingThrough:
    def __init__(self, resources: Resources, tokens: OAuthTokens) -> None:
        self._resources = resources
        self._tokens = tokens

    async def relay_of(self, way: WayOut) -> str:
        """Return the relay, with a token if the mailbox uses OAuth. Raises ImapError without one."""
        if not way.needs_token or way.connection_id is None:
            return way.outbound
        connection = await self._resources.db.read(connections.find, way.connection_id)
        if connection is None:
            raise ImapError("The connection is gone.")
        return connection.smtp_url(await self._tokens.get(connection))

    async def keep_copy(self, connection_id: str, raw: bytes) -> None:
        """Keep a copy of an email that has left: errors here are only logged."""
        connection = await self._resources.db.read(connections.find, connection_id)
        if connection is None or str(connection.settings["smtp"]["host"]).endswith(KEEP_THEIR_OWN):
            return
        try:
            client = await sign_in(self._resources, self._tokens, connection)
            try:
                folder = await client.find_sent_folder()
                if folder is not None:
                    await client.append(folder, raw)
            finally:
                await client.log_out()
        except ImapError as error:
            log.get().seldom("no copy in the Sent folder", connection=connection_id, reason=str(error))
