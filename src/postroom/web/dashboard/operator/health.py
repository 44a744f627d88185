"""The state of the server: emails by the hour, disk, workers, loops and pauses."""

import shutil
from operator import attrgetter

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts.rules import pauses
from postroom.accounts.rules.pauses import PausedScope
from postroom.certificates import certificates
from postroom.clock import DAY, SECOND
from postroom.config import Config
from postroom.mailbox.search import indexing
from postroom.mailbox.search.indexing import Progress
from postroom.operations.operator import require_operator
from postroom.processes import pools, process_metrics
from postroom.queue import deliveries, leader_leases, statistics
from postroom.queue.leader_leases import LeaderLease
from postroom.queue.statistics import Hour, Loop
from postroom.upkeep.upkeep_loop import LEASE_HELD
from postroom.web.call import Tx
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.display.plots import bars
from postroom.web.dashboard.page_context import PageContext

PAUSES_SHOWN = 100
LEASES_SHOWN = 50
EXPIRES_SOON = 14 * DAY


CERTIFICATES_SHOWN = 20


class Overview(Struct, frozen=True):
    hours: list[Hour]
    loops: list[Loop]
    pauses: list[PausedScope]
    oldest_seconds: float
    search: Progress
    leases: list[LeaderLease]
    ordered: list[certificates.CertificateOutlook]


class CertificateState(Struct, frozen=True):
    names: tuple[str, ...]
    expires_at: int
    is_own: bool  # self-signed, made here


class Node(Struct, frozen=True):
    id: str
    where: str
    heard_at: int
    leases: list[str]  # what it does for all nodes


def to_nodes(held: list[LeaderLease], now: int) -> list[Node]:
    """Return the nodes, from the leases held now: a node's presence is stored as a lease too."""
    return [
        Node(
            id=(node := each.name.removeprefix(leader_leases.NODE)),
            where=each.holder,
            heard_at=min(now, each.held_until - LEASE_HELD),  # one that is alone holds it for longer
            leases=[other.name for other in held if other.holder == node],
        )
        for each in held
        if each.name.startswith(leader_leases.NODE)
    ]


def list_others(held: list[LeaderLease], nodes: list[Node]) -> list[LeaderLease]:
    """List the leases held by none of the nodes: some loops use their own id."""
    named = {name for node in nodes for name in node.leases}
    return [each for each in held if not each.name.startswith(leader_leases.NODE) and each.name not in named]


def list_counted() -> list[tuple[str, str, int]]:
    return [
        (counter.name.removeprefix("postroom_").replace("_", " "), word, number)
        for counter in process_metrics.COUNTERS
        for word, number in sorted(counter.counts().items())
    ]


def read_overview(tx: Tx, context: PageContext, now: int) -> Overview:
    require_operator(tx, context.call.caller)
    return Overview(
        hours=statistics.list_hours(tx, now),
        loops=statistics.list_loops(tx, now),
        pauses=pauses.list_all(tx, PAUSES_SHOWN),
        oldest_seconds=(now - deliveries.oldest_due_at(tx, now)) / SECOND,
        search=indexing.progress(tx),
        leases=leader_leases.list_held(tx, now, LEASES_SHOWN),
        ordered=certificates.list_states(tx, CERTIFICATES_SHOWN),
    )


def read_certificate(config: Config) -> CertificateState | None:
    """Reads the current file; None if it cannot be read."""
    from cryptography import x509  # takes a while, and few ask

    file = config.tls_cert or config.data_dir / "tls" / ("acme.pem" if config.acme else "certificate.pem")
    try:
        found = x509.load_pem_x509_certificate(file.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return None
    return CertificateState(
        tuple(names.get_values_for_type(x509.DNSName)),
        int(found.not_valid_after_utc.timestamp()) * SECOND,
        found.issuer == found.subject,
    )


async def show_health(context: PageContext) -> Response:
    resources = context.call.resources
    overview = await context.read(read_overview, context, context.call.now())
    hours, nodes = overview.hours, to_nodes(overview.leases, context.call.now())
    return await context.show(
        "health.html",
        "operator",
        title="Health",
        overview=overview,
        inward=bars([hour.received for hour in hours], "Emails received by hour"),
        outward=bars([hour.sent for hour in hours], "Emails sent by hour", [hour.failed for hour in hours]),
        delays=plot_seconds([hour.event_seconds for hour in hours]),
        waited=plot_seconds([hour.queue_seconds for hour in hours]),
        now_hour=hours[-1],
        nodes=nodes,
        others=list_others(overview.leases, nodes),
        counted=list_counted(),
        disk=shutil.disk_usage(resources.config.data_dir),
        workers=resources.workers,
        troubles=resources.loops.failing(),
        failures=resources.loops.failures,
        services=sorted(resources.services.found.items()),
        config=resources.config,
        ordered=overview.ordered,
        certificate=await pools.FILES.run(read_certificate, resources.config),
        soon=context.call.now() + EXPIRES_SOON,
    )


async def export(context: PageContext) -> Response:
    now = context.call.now()
    hours = (await context.read(read_overview, context, now)).hours
    columns = attrgetter("received", "sent", "failed", "event_seconds", "queue_seconds")
    rows = [(len(hours) - 1 - place, *columns(each)) for place, each in enumerate(hours)]
    head = ("hoursAgo", "received", "sent", "failed", "eventP95Seconds", "queueP95Seconds")
    return sheets.to_file("mails-by-hour.csv", head, rows)


def plot_seconds(by_hour: list[float | None]) -> str:
    milliseconds = [round((seconds or 0) * SECOND) for seconds in by_hour]
    return bars(milliseconds, "Milliseconds by hour", is_sum=False, unit=" ms")
