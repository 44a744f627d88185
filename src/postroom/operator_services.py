"""Starts what asks a service of the operator's choice, what rules have queued, and the junk filter."""

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from postroom.certificates.challenge_server import start_challenge_server
from postroom.certificates.in_use import CertificatesInUse
from postroom.certificates.keep_certificates import CertificateKeeper
from postroom.certificates.wanted import own_names
from postroom.config import Config, ConfigError
from postroom.couriers.webhook import HttpCourier, WebhookLimits
from postroom.inward.junk.learning import learn_all
from postroom.inward.rules import tasks
from postroom.llm_judge.judge_arrivals import Judge
from postroom.net.certificate import Certificate
from postroom.outward import nudges, rule_tasks
from postroom.outward.notices import dmarc_reports, tls_reports
from postroom.processes import pools
from postroom.queue.queue_loop import Queue, run_queue
from postroom.resources import Resources
from postroom.tracing import Tracing
from postroom.tracing import start as start_tracing

if TYPE_CHECKING:
    from postroom.certificates.dns_challenges import DnsChallenges


async def start_acme(
    stack: contextlib.AsyncExitStack, resources: Resources, certificate: Certificate
) -> None:
    """Start ACME. The operator chose the authority: it may well be in their own network."""
    fetcher = HttpCourier(resources.resolver, allow_private=True, limits=WebhookLimits(deadline_seconds=30))
    stack.push_async_callback(fetcher.close)
    own = own_names(resources.config)
    if not own:
        raise ConfigError("POSTROOM_ACME", "needs a public name: set POSTROOM_DOMAIN or POSTROOM_BASE_URL")
    has_http = await start_challenge_server(stack, resources)
    in_use = CertificatesInUse(certificate, resources.config.data_dir / "tls", own[0])
    keeper = CertificateKeeper(resources, fetcher, in_use, has_http, open_dns(resources, fetcher))
    resources.loops.run(stack, "certificates", keeper.run)


def open_dns(resources: Resources, fetcher: HttpCourier) -> "DnsChallenges | None":
    """Open the DNS provider. Without one, names are proved on ports 80 and 443."""
    config = resources.config
    if not config.dns_provider:
        return None
    from postroom.certificates.dns_challenges import DnsChallenges  # few servers need them
    from postroom.dns_providers.choose import open_provider
    from postroom.dns_providers.zone import DnsProviderError

    try:
        provider = open_provider(config.dns_provider, config.dns_token, fetcher, resources.resolver)
    except DnsProviderError as error:
        raise ConfigError("POSTROOM_DNS_TOKEN", error.reason) from error
    return DnsChallenges(provider, resources.resolver)


async def open_tracing(stack: contextlib.AsyncExitStack, config: Config) -> Tracing | None:
    """Open tracing. Without a collector nothing of OpenTelemetry is loaded."""
    if not config.otel_url:
        return None
    tracing = await pools.ONCE.run(start_tracing, config)
    stack.push_async_callback(pools.ONCE.run, tracing.close)
    return tracing


def start_reports(stack: contextlib.AsyncExitStack, resources: Resources) -> None:
    """Starts the reports to other domains: how TLS with them went, and what came in their name."""
    if resources.config.tls_reports:
        resources.loops.run(stack, "TLS reports", partial(tls_reports.write_reports, resources))
    if resources.config.dmarc_reports:
        resources.loops.run(stack, "DMARC reports", partial(dmarc_reports.write_reports, resources))


def start_judges(stack: contextlib.AsyncExitStack, resources: Resources) -> None:
    """Starts what looks at email behind its event: rules, the judge, and what learns of junk."""
    resources.loops.run(stack, "junk filter", partial(learn_all, resources))
    start_rules(stack, resources)


def start_rules(stack: contextlib.AsyncExitStack, resources: Resources) -> None:
    """Starts what rules have queued, and the judge, whom they may ask."""
    judge = start_judge(stack, resources) if resources.config.judge_url else None
    queue = Queue(tasks.BELL, tasks.is_due, tasks.claim_due, tasks.renew, at_once=8)
    ask = None if judge is None else judge.ask_about
    resources.loops.run(stack, "follow-ups", partial(nudges.send_nudges, resources))
    resources.loops.run(
        stack, "rules", partial(run_queue, resources, queue, partial(rule_tasks.do_task, resources, ask))
    )


def start_judge(stack: contextlib.AsyncExitStack, resources: Resources) -> Judge:
    """Start the judge. The operator chose its address: it may well be on this machine."""
    limits = WebhookLimits(deadline_seconds=resources.config.judge_seconds)
    fetcher = HttpCourier(resources.resolver, allow_private=True, limits=limits)
    stack.push_async_callback(fetcher.close)
    judge = Judge(resources, fetcher)
    resources.loops.run(stack, "judge", judge.run)
    return judge
