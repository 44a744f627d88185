"""Where mail clients send: TLS from the first byte on port 465, STARTTLS on all others."""

import asyncio
import ssl
from functools import partial

from postroom.accounts.permissions import WRITING
from postroom.net.mail_clients.admissions import Admissions
from postroom.net.mail_clients.limits import ClientLimits
from postroom.net.mail_clients.server import MailClientServer
from postroom.net.proxies import Proxies
from postroom.operations.folders import names
from postroom.resources import Resources
from postroom.smtp.dialogue import replies
from postroom.smtp.limits import SessionLimits
from postroom.smtp.submission.connection import SubmissionConnection, SubmissionContext

SUBMISSIONS_PORT = 465  # TLS from the first byte (RFC 8314 section 3.3)


class SubmissionServer(MailClientServer):
    setting = "POSTROOM_SUBMISSION"
    key_ended = b"421 4.7.0 The key was revoked, or may send no more\r\n"
    shutting_down = replies.SHUTTING_DOWN

    def __init__(
        self,
        resources: Resources,
        tls: ssl.SSLContext,
        limits: ClientLimits | None = None,
        is_tls_from_the_start: bool = False,
    ) -> None:
        limits = limits or ClientLimits()
        self._resources = resources
        context = SubmissionContext(
            tls=tls,
            is_tls_from_the_start=is_tls_from_the_start,
            spool_folder=resources.config.data_dir / "spool",
            admissions=Admissions(limits),
            large_mails=asyncio.Semaphore(limits.max_large_mails),
            resources=resources,
            limits=limits,
            session_limits=SessionLimits(hostname=resources.config.domain),
        )
        super().__init__(
            context, Proxies(resources.config.trusted_proxies), partial(SubmissionConnection, context)
        )

    async def _find_allowed(self, asked: list[tuple[str, str]]) -> set[tuple[str, str]]:
        return await self._resources.db.read(names.find_allowed, asked, WRITING, self._resources.now())
