"""Receives mail: in workers, or in this process; through a journal, or directly into the database.

Also the servers for mail clients: IMAP and submission, each loaded only if its setting is on.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct

from postroom.config import ConfigError, Endpoint, uses_journal
from postroom.inward.examine import Extractor
from postroom.inward.journal import positions
from postroom.inward.journal.aside import take_up
from postroom.inward.journal.running import deposit_others, open_depositor, running_journal
from postroom.inward.journal.turns import FairReader
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader, Reader, warm_up
from postroom.inward.refusals import Refusals
from postroom.net.certificate import Certificate
from postroom.net.proxies import Proxies
from postroom.processes import pools
from postroom.resources import Resources
from postroom.smtp.backend import MailIntake
from postroom.smtp.intake import DatabaseIntake, JournalIntake, RefusingIntake
from postroom.smtp.limits import SessionLimits
from postroom.smtp.recipient_cache import CachedDirectory, watch_deleted_inboxes
from postroom.smtp.recipient_directory import DatabaseDirectory
from postroom.smtp.server import Server as SmtpServer
from postroom.workers.supervisor import WorkerSupervisor
from postroom.workers.supervisor import listen as worker_sockets


class MailServer(Struct, frozen=True):
    """The SMTP server and the reader of its mail: workers, or this process."""

    port: int
    reader: Reader
    wait_until_ready: Callable[[], Awaitable[object]]
    reload_certificate: Callable[[], None]
    sessions: Callable[[], int]


async def start_mail_intake(
    stack: contextlib.AsyncExitStack,
    resources: Resources,
    return_path_secret: bytes,
    max_connections: int,
    certificate: Certificate,
) -> MailServer:
    config = resources.config
    recipients = DatabaseDirectory(resources, return_path_secret)
    slots = range(max(1, config.workers)) if uses_journal(config) else range(0)
    journals = [positions.of_slot(config.data_dir, slot) for slot in slots]
    await take_up(resources)
    resources.loops.run(stack, "journals", partial(deposit_others, resources, journals))
    if config.workers:
        sockets = worker_sockets(config.smtp, config.workers)
        depositors = [await open_depositor(resources, folder) for folder in journals]
        supervisor = WorkerSupervisor(
            resources, recipients, sockets, certificate.files, depositors=depositors
        )
        supervisor.start()
        stack.push_async_callback(supervisor.stop)
        return MailServer(
            supervisor.port,
            supervisor,
            supervisor.wait_until_ready,
            supervisor.reload_certificate,
            supervisor.count,
        )
    reader, directory = OwnReader(AT_ONCE_BYTES), CachedDirectory(recipients)
    resources.loops.run(stack, "recipient cache", partial(watch_deleted_inboxes, resources, directory.clear))
    limits = SessionLimits(hostname=config.domain, max_connections=max_connections)
    spool = config.data_dir / "spool"
    proxies = Proxies(config.trusted_proxies)
    intake: MailIntake = DatabaseIntake(resources, FairReader(reader))
    for folder in journals:
        journal = await stack.enter_async_context(running_journal(resources, folder, reader))
        large = DatabaseIntake(resources, FairReader(reader, journal.turns))
        intake = JournalIntake(journal, large, config.domain, resources.now)
    intake = RefusingIntake(intake, Refusals(resources).find, config.domain, resources.now)
    smtp = SmtpServer(directory, intake, limits, spool, certificate.context, proxies=proxies)
    await pools.ONCE.run(warm_up)
    await start_smtp(smtp, config.smtp)
    stack.push_async_callback(smtp.stop)
    return MailServer(smtp.port, reader, partial(asyncio.sleep, 0), lambda: None, smtp.count)


async def start_smtp(smtp: SmtpServer, endpoint: Endpoint) -> None:
    try:
        await smtp.start(endpoint.host, endpoint.port)
    except OSError as error:
        raise ConfigError("POSTROOM_SMTP", f"cannot listen on {endpoint}: {error.strerror}") from error


class MailClientPorts(Struct, frozen=True):
    """Where they listen; None: not at all."""

    imap: int | None
    submission: int | None


async def start_mail_clients(
    stack: contextlib.AsyncExitStack, resources: Resources, extractor: Extractor, certificate: Certificate
) -> MailClientPorts:
    return MailClientPorts(
        await _start_imap(stack, resources, extractor, certificate),
        await _start_submission(stack, resources, certificate),
    )


async def _start_imap(
    stack: contextlib.AsyncExitStack, resources: Resources, extractor: Extractor, certificate: Certificate
) -> int | None:
    endpoint = resources.config.imap
    if endpoint is None:
        return None
    from postroom.imap.server import IMAPS_PORT, ImapServer

    is_tls = endpoint.port == IMAPS_PORT
    server = ImapServer(resources, extractor, certificate.context, is_tls_from_the_start=is_tls)
    await server.start(endpoint)
    resources.loops.run(stack, "imap sessions", server.run)
    resources.loops.run(stack, "imap changes", server.watch.run)
    stack.push_async_callback(server.stop)
    resources.gauges["postroom_imap_sessions"] = server.count
    return server.port


async def _start_submission(
    stack: contextlib.AsyncExitStack, resources: Resources, certificate: Certificate
) -> int | None:
    if not resources.config.submission:
        return None
    from postroom.smtp.submission.server import SUBMISSIONS_PORT, SubmissionServer

    servers: list[SubmissionServer] = []
    for endpoint in resources.config.submission:
        is_tls = endpoint.port == SUBMISSIONS_PORT
        server = SubmissionServer(resources, certificate.context, is_tls_from_the_start=is_tls)
        await server.start(endpoint)
        name = f"submission sessions {endpoint.port}" if servers else "submission sessions"
        resources.loops.run(stack, name, server.run)
        stack.push_async_callback(server.stop)
        servers.append(server)
    resources.gauges["postroom_submission_sessions"] = lambda: sum(server.count() for server in servers)
    return servers[0].port
