"""Builds and wires every part, top to bottom. Read this first."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

from postroom import descriptors, pools
from postroom.accounts import secret_values
from postroom.clock import Clock, SystemClock
from postroom.config import Config, ConfigError, Endpoint, allows_private_targets
from postroom.couriers.mail import SmtpCourier
from postroom.couriers.relay import parse_outbound
from postroom.couriers.webhook import HttpCourier
from postroom.extraction.pool import ExtractionPool
from postroom.first_start import RETURN_PATH, make_first_account, make_service_key
from postroom.inward import examine
from postroom.mail import dkim
from postroom.net.dns import Resolver, ThreadResolver
from postroom.net.target import ForbiddenTarget, check_url
from postroom.outward.deliver_mail import Outbound, deliver_mail
from postroom.outward.deliver_webhook import deliver_webhook
from postroom.outward.signing import Signers
from postroom.outward.watch_holds import watch_holds
from postroom.queue import deliveries
from postroom.queue.work import Queue, work_through
from postroom.resources import Resources
from postroom.smtp.policy import Policy
from postroom.smtp.reception import Reception
from postroom.smtp.server import Server as SmtpServer
from postroom.smtp.tls import server_context
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database
from postroom.storage.folder import FolderLock, make_folder
from postroom.supervision import Loop, Supervision
from postroom.upkeep import keep_up
from postroom.web.door import Door
from postroom.web.server import HttpServer
from postroom.web.stream import Streams

KEY_USE_SECONDS = 5.0
EXAMINATIONS = Queue(examine.BELL, examine.claim_due, examine.renew, at_once=16)
WEBHOOKS = Queue(deliveries.WEBHOOK_BELL, deliveries.claim_webhooks, deliveries.renew, at_once=100)
MAIL = Queue(deliveries.BELL, deliveries.claim_mail, deliveries.renew, at_once=64)


class Postroom:
    """A running server."""

    def __init__(self, resources: Resources, first_token: str | None, smtp_port: int) -> None:
        self.resources = resources
        self.first_token = first_token  # set once: when this start made the first account
        self.smtp_port = smtp_port


@contextlib.asynccontextmanager
async def serving(
    config: Config,
    clock: Clock | None = None,
    resolver: Resolver | None = None,
    make_key: Callable[[], bytes] = dkim.generate_key,
) -> AsyncIterator[Postroom]:
    """Everything is up inside the block, and has finished its work after it."""
    async with contextlib.AsyncExitStack() as stack:
        caps = descriptors.caps(descriptors.raise_limit())
        lock = FolderLock(config.data_dir)
        stack.callback(lock.release)
        listener = listen("POSTROOM_HTTP", config.http)
        stack.callback(listener.close)
        config = with_base_url(config, listener)
        require_webhook_url(config)

        clock = clock or SystemClock()
        db = await open_database(config, clock.now())
        stack.push_async_callback(db.close)
        stopping, loops = asyncio.Event(), Supervision(clock)
        resolver = resolver or Resolver()
        stack.push_async_callback(resolver.close)
        blobs = LocalBlobs(config.data_dir / "blobs")
        resources = Resources(config, db, blobs, clock, resolver, stopping, loops)
        first_token = await db.write(make_first_account, config, clock.now())

        extractor = ExtractionPool()
        stack.push_async_callback(extractor.close)
        lookup = ThreadResolver(resolver, asyncio.get_running_loop())
        look_at = partial(examine.examine_message, resources, extractor, lookup)
        run(stack, resources, "examinations", partial(work_through, resources, EXAMINATIONS, look_at))
        run(stack, resources, "upkeep", partial(keep_up, resources))

        return_path_secret = await db.read(secret_values.get, RETURN_PATH)
        courier = mail_courier(resources)
        stack.push_async_callback(courier.close)
        signers = Signers()
        stack.callback(signers.close)
        outbound = Outbound(courier, signers, return_path_secret)
        run(stack, resources, "mail", partial(send_out, resources, outbound, make_key))

        run(stack, resources, "holds", partial(watch_holds, resources))
        reception = Reception(resources, return_path_secret)
        tls = await pools.ONCE.run(server_context, config.data_dir / "tls", config.domain)
        smtp = SmtpServer(
            reception,
            reception,
            Policy(hostname=config.domain, max_connections=caps.smtp),
            config.data_dir / "spool",
            tls,
        )
        await start_smtp(smtp, config.smtp)
        stack.push_async_callback(smtp.stop)

        webhook_courier = HttpCourier(resolver, allow_private=allows_private_targets(config))
        stack.push_async_callback(webhook_courier.close)
        deliver = partial(deliver_webhook, resources, webhook_courier)
        run(stack, resources, "webhooks", partial(work_through, resources, WEBHOOKS, deliver))

        streams = Streams(resources)
        door = Door(resources, webhook_courier, streams)
        run(stack, resources, "watch of keys", streams.watch_keys)
        stack.push_async_callback(door.key_use.save)
        run(stack, resources, "saving of key use", partial(save_key_use_now_and_then, door))
        http = HttpServer(door, listener, most_connections=caps.http)
        await http.start()
        stack.push_async_callback(http.stop)
        stack.push_async_callback(streams.close)
        stack.callback(stopping.set)

        yield Postroom(resources, first_token, smtp.port)


async def open_database(config: Config, now: int) -> Database:
    if config.database_url:
        from postroom.storage.postgres import open_postgres

        return await open_postgres(config.database_url, now)
    from postroom.storage.sqlite import open_sqlite

    make_folder(config.data_dir)
    return open_sqlite(config.data_dir / "postroom.db", now)


async def save_key_use_now_and_then(door: Door) -> None:
    while True:
        await asyncio.sleep(KEY_USE_SECONDS)
        await door.key_use.save()


def run(
    stack: contextlib.AsyncExitStack,
    resources: Resources,
    name: str,
    loop: Loop,
) -> None:
    """A loop that works until everything stops."""
    stack.push_async_callback(stop, asyncio.create_task(resources.loops.supervise(name, loop)))


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def require_webhook_url(config: Config) -> None:
    try:
        if config.webhook_url:
            check_url(config.webhook_url, allows_private_targets(config))
    except ForbiddenTarget as error:
        raise ConfigError("POSTROOM_WEBHOOK_URL", error.reason) from None


def mail_courier(resources: Resources) -> SmtpCourier:
    config = resources.config
    try:
        relay = parse_outbound(config.outbound)
    except ValueError as error:
        raise ConfigError("POSTROOM_OUTBOUND", str(error)) from None
    return SmtpCourier(
        resources.resolver,
        own_name=config.domain,
        relay=relay,
        allow_private=allows_private_targets(config),
    )


async def send_out(resources: Resources, outbound: Outbound, make_key: Callable[[], bytes]) -> None:
    """Nothing leaves before there is a key to sign it with; making one takes a moment, once."""
    await make_service_key(resources.db, resources.config.domain, make_key)
    await work_through(resources, MAIL, partial(deliver_mail, resources, outbound))


async def start_smtp(smtp: SmtpServer, endpoint: Endpoint) -> None:
    try:
        await smtp.start(endpoint.host, endpoint.port)
    except OSError as error:
        raise ConfigError("POSTROOM_SMTP", f"cannot listen on {endpoint}: {error.strerror}") from error


def listen(setting: str, endpoint: Endpoint) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
        return socket.create_server((endpoint.host, endpoint.port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        raise ConfigError(setting, f"cannot listen on {endpoint}: {error}") from error


def with_base_url(config: Config, listener: socket.socket) -> Config:
    http = Endpoint(config.http.host, listener.getsockname()[1])
    return replace(config, http=http, base_url=config.base_url or f"http://{http}")
