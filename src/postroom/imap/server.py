"""The IMAP server: TLS from the first byte on port 993, STARTTLS on all others."""

import asyncio
import ssl
from functools import partial

from postroom.accounts.permissions import READING
from postroom.imap.connection import ImapConnection, ImapContext
from postroom.imap.dialogue.limits import ImapLimits
from postroom.imap.dialogue.protocol import SHUTTING_DOWN
from postroom.imap.watching import InboxWatch
from postroom.inward.examine import Extractor
from postroom.net.mail_clients.admissions import Admissions
from postroom.net.mail_clients.server import MailClientServer
from postroom.net.proxies import Proxies
from postroom.operations.folders import names
from postroom.resources import Resources

IMAPS_PORT = 993  # TLS from the first byte (RFC 8314 section 3.2)


class ImapServer(MailClientServer):
    setting = "POSTROOM_IMAP"
    key_ended = b"* BYE [UNAVAILABLE] The key was revoked, or may read no more.\r\n"
    shutting_down = SHUTTING_DOWN
    stopping_seconds = 5.0

    def __init__(
        self,
        resources: Resources,
        extractor: Extractor,
        tls: ssl.SSLContext | None,
        limits: ImapLimits | None = None,
        is_tls_from_the_start: bool = False,
    ) -> None:
        limits = limits or ImapLimits()
        self._resources = resources
        self.watch = InboxWatch(resources)
        context = ImapContext(
            tls=tls,
            is_tls_from_the_start=is_tls_from_the_start,
            spool_folder=resources.config.data_dir / "spool",
            admissions=Admissions(limits),
            large_mails=asyncio.Semaphore(limits.max_large_mails),
            resources=resources,
            extractor=extractor,
            limits=limits,
            watch=self.watch,
        )
        super().__init__(context, Proxies(resources.config.trusted_proxies), partial(ImapConnection, context))

    async def _find_allowed(self, asked: list[tuple[str, str]]) -> set[tuple[str, str]]:
        return await self._resources.db.read(names.find_allowed, asked, READING, self._resources.now())

    async def stop(self) -> None:
        await super().stop()
        self.watch.close()
