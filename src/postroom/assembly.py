"""Builds and wires every part, top to bottom. Read this first."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from msgspec.structs import replace

from postroom import log
from postroom.accounts import secret_values
from postroom.background_loops import start_background_loops
from postroom.caldav.server import CalDav
from postroom.certificates.in_use import first_files
from postroom.clock import SECOND, Clock, SystemClock
from postroom.config import (
    CAPTURE,
    Config,
    ConfigError,
    Endpoint,
    allows_private_targets,
    own_url,
    serves_https,
)
from postroom.couriers.mail import SmtpCourier
from postroom.couriers.outbound_routing import CapturingCourier, OutboundRouting
from postroom.couriers.tls.tls_policies import TlsPolicies
from postroom.couriers.webhook import HttpCourier
from postroom.deliverability import domain_reports
from postroom.external_mailboxes.follow_all import follow_all
from postroom.external_mailboxes.follow_mailbox import BATCHES_AT_ONCE, Follower
from postroom.external_mailboxes.mailbox_access import OAuthTokens
from postroom.external_mailboxes.posts import PostIntake
from postroom.external_mailboxes.sending_through import SendingThrough
from postroom.first_start import FirstAccount, make_first_account, make_service_key
from postroom.inward import examine, received_reports, review_answers, screening
from postroom.inward.extraction_pool import ExtractionPool
from postroom.inward.journal import positions
from postroom.inward.receive import Reader
from postroom.mail_server import MailClientPorts, MailServer, start_mail_clients, start_mail_intake
from postroom.net.allowed_target import ForbiddenTarget, check_url
from postroom.net.certificate import Certificate, CertificateFiles
from postroom.net.dns import Resolver, ThreadResolver
from postroom.net.listening import close_all, listen_on
from postroom.net.proxies import Proxies
from postroom.net.relay import Relay, parse_ways
from postroom.operations.calendars.follow_feeds import start_calendars
from postroom.operator_services import open_tracing, start_acme, start_judges, start_reports
from postroom.outward import deliver_mail, deliver_webhook, reviewers
from postroom.outward.courier import MailCourier
from postroom.outward.deliver import deliver_all
from postroom.outward.deliver_mail import Outbound
from postroom.outward.delivering.receivers import Receivers
from postroom.outward.holding.watch_holds import watch_holds
from postroom.outward.notices import deliver_notice
from postroom.outward.sign_mail import Signers
from postroom.processes import descriptors, pools, process_metrics, struct_types
from postroom.processes.loop_supervisor import Loop, LoopSupervisor
from postroom.queue import deliveries, leader_leases
from postroom.queue.deliveries import Delivery
from postroom.queue.queue_loop import Queue, run_queue
from postroom.queue.recording import JOURNAL_NAME, Recorder
from postroom.resources import Resources
from postroom.smtp.tls import own_files
from postroom.storage.data_folder import FolderLock, make_folder
from postroom.storage.journal import Journal
from postroom.storage.opening import open_blobs, open_database
from postroom.upkeep.shared_blob_store import keep_store, require_one_store
from postroom.web.agentmail import events as agentmail_events
from postroom.web.agentmail.writing.send_due import send_due_drafts
from postroom.web.app import App
from postroom.web.dashboard.delayed_operations import carry_out_delayed
from postroom.web.server import HttpServer
from postroom.web.streams.hub import Hubs
from postroom.web.streams.stream import Streams
from postroom_mail.authentication import dkim

KEY_USE_SECONDS = 5.0
EXAMINATIONS = Queue(examine.BELL, examine.is_due, examine.claim_due, examine.renew, at_once=16)
REPORTS = Queue(
    received_reports.BELL,
    received_reports.is_due,
    received_reports.claim_due,
    received_reports.renew,
    at_once=2,
)
ANSWERS = Queue(
    review_answers.BELL, review_answers.is_due, review_answers.claim_due, review_answers.renew, at_once=8
)


class Postroom:
    """A running server."""

    def __init__(
        self,
        resources: Resources,
        first: FirstAccount | None,
        mail_server: MailServer,
        streams: Streams,
        certificate: Certificate,
        programs: MailClientPorts,
    ) -> None:
        self.resources = resources
        self._mail_server = mail_server
        self._streams = streams
        self._certificate = certificate
        self.first_token = None if first is None else first.token  # when this start made the first account
        self.first_link = None if first is None else first.link
        self.smtp_port = mail_server.port
        self.programs = programs

    def reload_certificate(self) -> None:
        self._certificate.refresh()
        self._mail_server.reload_certificate()

    async def drain(self) -> None:
        """Reports not ready for as long as load balancers need to notice; then closes the streams."""
        self.resources.draining.set()
        if self.resources.config.drain_seconds:
            await asyncio.sleep(self.resources.config.drain_seconds)
            await self._streams.empty()


@contextlib.asynccontextmanager
async def serving(
    config: Config,
    clock: Clock | None = None,
    resolver: Resolver | None = None,
    make_key: Callable[[], bytes] = dkim.generate_key,
) -> AsyncIterator[Postroom]:
    """Run the server inside the block. After it, all its work is finished."""
    async with contextlib.AsyncExitStack() as stack:
        struct_types.prepare()
        log.use(config.log)
        caps = descriptors.caps(descriptors.raise_limit())
        config, listener = lock_folder_and_listen(stack, config)
        certificate = await read_certificate(config)
        resources = await open_resources(
            stack, config, clock or SystemClock(), resolver or Resolver(trusts_dnssec=config.dane)
        )
        first = await resources.db.write(make_first_account, config, resources.now())

        lookup = ThreadResolver(resources.resolver, asyncio.get_running_loop())
        run(stack, resources, "certificate", certificate.keep_fresh)
        if config.acme:
            await start_acme(stack, resources, certificate)
        extractor = start_examination_and_upkeep(stack, resources, lookup)
        return_path_secret = await resources.db.read(secret_values.get, secret_values.RETURN_PATH)
        mail_server = await start_mail_intake(stack, resources, return_path_secret, caps.smtp, certificate)
        resources.ports.smtp = mail_server.port
        recorder = Recorder(resources, Journal(config.data_dir / JOURNAL_NAME))
        webhook_courier = start_webhooks(stack, resources, recorder)
        tokens = OAuthTokens(resources, webhook_courier)
        reader = mail_server.reader
        start_deliveries(
            stack, resources, recorder, return_path_secret, reader, tokens, make_key, webhook_courier
        )
        weigh = partial(reviewers.weigh_answer, resources, lookup)
        run(stack, resources, "answers", partial(run_queue, resources, ANSWERS, weigh))
        posts = PostIntake(resources, mail_server.reader, webhook_courier)
        follower = Follower(resources, mail_server.reader, tokens, asyncio.Semaphore(BATCHES_AT_ONCE))
        run(stack, resources, "mailboxes", partial(follow_all, follower))
        programs = await start_mail_clients(stack, resources, extractor, certificate)
        streams = await start_http(stack, resources, webhook_courier, posts, listener, caps.http, certificate)

        resources.gauges.update(
            postroom_streams=streams.count,
            postroom_smtp_sessions=mail_server.sessions,
            postroom_journal_bytes=partial(positions.count_bytes, config.data_dir),
            postroom_journal_set_aside=partial(positions.count_aside, config.data_dir),
            postroom_journal_damaged=partial(positions.count_damaged, config.data_dir),
            postroom_certificate_expiry_timestamp_seconds=lambda: certificate.expires_at() / SECOND,
        )
        run(stack, resources, "pauses", process_metrics.measure_pauses)
        await pools.ONCE.run(screening.load)  # while the workers start
        await mail_server.wait_until_ready()
        yield Postroom(resources, first, mail_server, streams, certificate, programs)


def lock_folder_and_listen(stack: contextlib.AsyncExitStack, config: Config) -> tuple[Config, socket.socket]:
    """Comes first: no other process may have the folder or the port."""
    lock = FolderLock(config.data_dir)
    stack.callback(lock.release)
    listener = listen("POSTROOM_HTTP", config.http)
    stack.callback(listener.close)
    config = with_base_url(config, listener)
    require_webhook_url(config)
    return config, listener


async def open_resources(
    stack: contextlib.AsyncExitStack, config: Config, clock: Clock, resolver: Resolver
) -> Resources:
    db = await open_database(config, clock.now())
    stack.push_async_callback(db.close)
    stack.push_async_callback(resolver.close)
    stopping, loops = asyncio.Event(), LoopSupervisor(clock)
    tracing, blobs = await open_tracing(stack, config), open_blobs(config)
    resources = Resources(
        config,
        db,
        blobs,
        clock,
        resolver,
        stopping,
        loops=loops,
        tracing=tracing,
        is_alone=not config.database_url,
    )
    if resources.is_alone:
        await leader_leases.release_of_earlier(resources)
    await require_one_store(resources)
    run(stack, resources, "one store", partial(keep_store, resources))
    return resources


def start_examination_and_upkeep(
    stack: contextlib.AsyncExitStack, resources: Resources, lookup: ThreadResolver
) -> ExtractionPool:
    """Starts work on stored mail: examination, search index, and removal of expired mail."""
    extractor = ExtractionPool()
    stack.push_async_callback(extractor.close)
    resources.previews.make = extractor.preview
    resources.event_translation.render = agentmail_events.render_for_webhook
    look_at = partial(examine.examine_message, resources, extractor, lookup)
    run(stack, resources, "examinations", partial(run_queue, resources, EXAMINATIONS, look_at))
    start_judges(stack, resources)
    start_background_loops(stack, resources)
    read = partial(domain_reports.read_mail, resources, lookup)
    run(stack, resources, "domain reports", partial(run_queue, resources, REPORTS, read))
    return extractor


def start_deliveries(
    stack: contextlib.AsyncExitStack,
    resources: Resources,
    recorder: Recorder,
    return_path_secret: bytes,
    reader: Reader,
    tokens: OAuthTokens,
    make_key: Callable[[], bytes],
    webhook_courier: HttpCourier,
) -> None:
    courier = mail_courier(resources, TlsPolicies(resources.resolver, webhook_courier))
    stack.push_async_callback(courier.close)
    signers = Signers()
    stack.callback(signers.close)
    through = SendingThrough(resources, tokens)
    receivers = Receivers(resources.resolver, resources.config.outbound)
    outbound = Outbound(courier, signers, return_path_secret, reader, recorder, through, receivers)
    deliver = partial(deliver_signed, resources, recorder, make_key, asyncio.Lock())
    send = partial(deliver_mail.deliver_mail, resources, outbound)
    run(stack, resources, "mail", partial(deliver, deliveries.MAIL, send))
    run(stack, resources, "holds", partial(watch_holds, resources))
    run(stack, resources, "drafts", partial(send_due_drafts, resources))
    notice_courier = partial(deliver_notice.deliver_notice, resources, outbound, webhook_courier)
    start_reports(stack, resources)
    run(stack, resources, "notices", partial(deliver, deliveries.NOTICE, notice_courier))


def start_webhooks(stack: contextlib.AsyncExitStack, resources: Resources, recorder: Recorder) -> HttpCourier:
    courier = HttpCourier(resources.resolver, allow_private=allows_private_targets(resources.config))
    stack.push_async_callback(courier.close)
    post = partial(deliver_webhook.deliver_webhook, resources, courier, recorder)
    run(stack, resources, "webhooks", partial(deliver_all, resources, recorder, deliveries.WEBHOOK, post))
    start_calendars(stack, resources, courier)
    return courier


async def start_http(
    stack: contextlib.AsyncExitStack,
    resources: Resources,
    webhook_courier: HttpCourier,
    posts: PostIntake,
    listener: socket.socket,
    max_connections: int,
    certificate: Certificate,
) -> Streams:
    streams = Streams(resources, Hubs(resources))
    app = App(resources, webhook_courier, streams, posts, CalDav(resources).answer)
    run(stack, resources, "key watch", streams.watch_keys)
    run(stack, resources, "session watch", app.live.watch_sessions)
    run(stack, resources, "delayed actions", partial(carry_out_delayed, resources, webhook_courier))
    stack.push_async_callback(app.save_use)
    run(stack, resources, "key use", partial(save_use_regularly, app))
    proxies = Proxies(resources.config.trusted_proxies)
    tls = certificate.context if serves_https(resources.config) else None
    http = HttpServer(app, listener, max_connections=max_connections, proxies=proxies, tls=tls)
    await http.start()
    stack.push_async_callback(http.stop)
    stack.push_async_callback(streams.close)
    stack.callback(app.live.close)
    stack.callback(resources.stopping.set)
    return streams


async def read_certificate(config: Config) -> Certificate:
    try:
        if config.tls_cert and config.tls_key:
            return Certificate(CertificateFiles(config.tls_cert, config.tls_key))
        make_folder(config.data_dir)
        own = await pools.ONCE.run(own_files, config.data_dir / "tls", config.domain)
        return Certificate(await pools.ONCE.run(first_files, own) if config.acme else own)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError("POSTROOM_TLS_CERT", f"the certificate cannot be read: {error}") from error


async def save_use_regularly(app: App) -> None:
    while True:
        await asyncio.sleep(KEY_USE_SECONDS)
        await app.save_use()


def run(
    stack: contextlib.AsyncExitStack,
    resources: Resources,
    name: str,
    loop: Loop,
) -> None:
    """Runs a loop under supervision until the server stops."""
    resources.loops.run(stack, name, loop)


def require_webhook_url(config: Config) -> None:
    try:
        if config.webhook_url:
            check_url(config.webhook_url, allows_private_targets(config))
    except ForbiddenTarget as error:
        raise ConfigError("POSTROOM_WEBHOOK_URL", error.reason) from None


def mail_courier(resources: Resources, policies: TlsPolicies) -> OutboundRouting:
    config, resolver = resources.config, resources.resolver
    allow_private = allows_private_targets(config)

    def make(relay: Relay | None) -> MailCourier:
        return SmtpCourier(
            resolver,
            own_name=config.domain,
            relay=relay,
            allow_private=allow_private,
            policies=policies,
            notes_sessions=bool(config.tls_reports),
        )

    if config.outbound == CAPTURE:
        return OutboundRouting([CapturingCourier()], make, resolver, allow_private)
    try:
        own = [make(relay) for relay in parse_ways(config.outbound)]
    except ValueError as error:
        raise ConfigError("POSTROOM_OUTBOUND", str(error)) from None
    return OutboundRouting(own, make, resolver, allow_private)


async def deliver_signed(
    resources: Resources,
    recorder: Recorder,
    make_key: Callable[[], bytes],
    key_lock: asyncio.Lock,
    kind: str,
    deliver: Callable[[Delivery], Awaitable[None]],
) -> None:
    """Delivers until cancelled. First makes the signing key, one loop for all: nothing leaves unsigned."""
    async with key_lock:
        await make_service_key(resources.db, resources.config.domain, resources.now(), make_key)
    await deliver_all(resources, recorder, kind, deliver)


def listen(setting: str, endpoint: Endpoint) -> socket.socket:
    try:
        found = sorted(listen_on(endpoint.host, endpoint.port, 2048), key=lambda each: each.family)
        close_all(found[1:])  # of a name with several addresses the IPv4 one
        return found[0]
    except (OSError, UnicodeError) as error:
        raise ConfigError(setting, f"cannot listen on {endpoint}: {error}") from error


def with_base_url(config: Config, listener: socket.socket) -> Config:
    http = Endpoint(config.http.host, listener.getsockname()[1])
    config = replace(config, http=http)
    return replace(config, base_url=config.base_url or own_url(config))
