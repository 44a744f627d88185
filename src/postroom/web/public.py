"""Public addresses: health, metrics and the description of the interface."""

import shutil
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts.signing_keys import PublishedKeys
from postroom.certificates import certificates
from postroom.clock import SECOND
from postroom.deliverability import check_domain
from postroom.errors import NotFound, Unavailable
from postroom.inward import examine
from postroom.mailbox.search import indexing
from postroom.operations import receipts
from postroom.processes import pools
from postroom.processes.process_metrics import RequestCounts
from postroom.queue import deliveries, statistics
from postroom.resources import Resources, Tx
from postroom.web import client_configuration
from postroom.web.interface import openapi as description
from postroom.web.interface import server_shapes
from postroom.web.packed import FixedResponse
from postroom.web.readiness import Readiness
from postroom.web.routing import Route

if TYPE_CHECKING:
    from postroom.web.metrics import Metrics

WARNINGS = 10
AUTOCONFIG = "/.well-known/autoconfig/mail/config-v1.1.xml"


class Pages(Protocol):
    """The part of the dashboard that needs no session."""

    def show_reference(self, page: str) -> Response: ...


class Site(Struct, frozen=True, dict=True):
    resources: Resources
    routes: Sequence[Route]
    requests: RequestCounts
    readiness: Readiness
    open_pages: Callable[[], Awaitable[Pages]]

    @cached_property
    def metrics(self) -> "Metrics":
        """Made at the first request: the library takes a while to load."""
        from postroom.web.metrics import Metrics

        return Metrics(self.requests)


async def health(site: Site) -> server_shapes.Health:
    """Check whether the process is alive"""
    return server_shapes.Health()


async def ready(site: Site) -> server_shapes.Readiness:
    """Check whether the server works: storage is writable, email is accepted, and every loop runs"""
    if site.resources.draining.is_set():
        raise Unavailable("The server is about to stop. Try again.", retry_after=5)
    await site.readiness.require()
    found = await site.resources.db.read(indexing.progress)
    workers = site.resources.workers
    if workers.expected and not workers.running:
        raise Unavailable("No worker can take email in. One is being started: try again.", retry_after=5)
    return server_shapes.Readiness(
        server_shapes.Workers(workers.expected, workers.running, workers.restarts),
        server_shapes.SearchProgress(found.waiting, found.earlier_percent),
        [*await site.resources.db.read(list_warnings), *list_faults(site.resources)],
    )


def list_warnings(tx: Tx) -> list[str]:
    """List warnings without reasons.

    Anyone may ask: reasons are only in the log, the events and the doctor.
    """
    return [
        f"The certificate for {failing.name} could not be renewed. Run `postroom doctor`."
        if failing.issued_at
        else f"There is no certificate for {failing.name} yet. Run `postroom doctor`."
        for failing in certificates.list_states(tx, WARNINGS, failing=True)
    ]


def list_faults(resources: Resources) -> list[str]:
    """List faults without names: which services watch over the email is nobody else's business."""
    found = dict.fromkeys(each.words for each in resources.services.found.values())
    return [f"{words} Run `postroom doctor`." for words in found][:WARNINGS]


async def describe_mcp(site: Site) -> server_shapes.ProtectedResource:
    """What MCP clients must know to sign in"""
    base_url = site.resources.config.base_url
    return server_shapes.ProtectedResource(
        f"{base_url}/mcp", "Postroom", f"{base_url}/docs", ["header"], [base_url]
    )


async def describe_mcp_below(site: Site) -> server_shapes.ProtectedResource:
    """The same, at the resource's own RFC 9728 address"""
    return await describe_mcp(site)


async def list_signing_keys(site: Site) -> PublishedKeys:
    """The public keys that receipts and heads of the audit log are signed with"""
    return await site.resources.db.read(receipts.list_signing_keys)


async def mta_sts_policy(site: Site) -> Response:
    """The MTA-STS policy of domains that receive here (RFC 8461), for any host in the URL"""
    policy = check_domain.own_policy(site.resources.config)
    return Response(policy, media_type="text/plain; charset=utf-8")


async def autoconfig(site: Site) -> Response:
    """What a mail client needs to open an inbox of this server"""
    config = site.resources.config
    if config.imap is None:
        raise NotFound("This server has no IMAP. The operator can set POSTROOM_IMAP.")
    return Response(client_configuration.autoconfig(config), media_type="application/xml")


async def metrics(site: Site) -> Response:
    """Counters for Prometheus"""
    now = site.resources.now()
    oldest = await site.resources.db.read(deliveries.oldest_due_at, now)
    free = shutil.disk_usage(site.resources.config.data_dir).free
    site.metrics.record_state(free, (now - oldest) / SECOND)
    site.metrics.record_depths(await site.resources.db.read(read_depths, now), now)
    site.metrics.record_gauges(site.resources.gauges)
    site.metrics.record_pools(pools.ALL)
    site.metrics.record_loops(site.resources.loops)
    site.metrics.record_services(site.resources.services)
    site.metrics.record_workers(site.resources.workers)
    return Response(site.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


def read_depths(tx: Tx, now: int) -> dict[str, tuple[int, int]]:
    examinations = examine.depth(tx, now, statistics.COUNTED_AT_MOST)
    return {**statistics.depths(tx, now), "examination": examinations}


async def openapi(site: Site) -> Response:
    """This description"""
    content = description.render(site.routes, site.resources.config.base_url)
    return FixedResponse(content, media_type="application/json")


async def llms(site: Site) -> Response:
    """The API on one page, for agents"""
    text = files("postroom.web").joinpath("llms.txt").read_text(encoding="utf-8")
    content = text.replace("{base_url}", site.resources.config.base_url)
    return FixedResponse(content, media_type="text/plain; charset=utf-8")


async def docs(site: Site) -> Response:
    """The API reference, to read and try in a browser"""
    return await _show_reference(site, "")


async def docs_of_group(site: Site, group: str) -> Response:
    return await _show_reference(site, group)


async def _show_reference(site: Site, page: str) -> Response:
    """Show the reference, in a thread: reading it and its template takes a while at the first request."""
    pages = await site.open_pages()
    return await pools.ONCE.run(pages.show_reference, page)
