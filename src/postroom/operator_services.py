"""Starts what asks a service of the operator's choice: a certificate authority, a judge of email."""

import contextlib

from postroom.certificates.challenge_server import start_challenge_server
from postroom.certificates.in_use import CertificatesInUse
from postroom.certificates.keep_certificates import CertificateKeeper
from postroom.certificates.wanted import own_names
from postroom.config import ConfigError
from postroom.couriers.webhook import HttpCourier, WebhookLimits
from postroom.judging.judge_arrivals import Judge
from postroom.net.certificate import Certificate
from postroom.resources import Resources


async def start_acme(
    stack: contextlib.AsyncExitStack, resources: Resources, certificate: Certificate
) -> None:
    """The operator chose the authority: it may well be in their own network."""
    fetcher = HttpCourier(resources.resolver, allow_private=True, limits=WebhookLimits(deadline_seconds=30))
    stack.push_async_callback(fetcher.close)
    own = own_names(resources.config)
    if not own:
        raise ConfigError("POSTROOM_ACME", "needs a public name: set POSTROOM_DOMAIN or POSTROOM_BASE_URL")
    has_http = await start_challenge_server(stack, resources)
    in_use = CertificatesInUse(certificate, resources.config.data_dir / "tls", own[0])
    resources.loops.run(stack, "certificates", CertificateKeeper(resources, fetcher, in_use, has_http).run)


def start_judge(stack: contextlib.AsyncExitStack, resources: Resources) -> None:
    """The operator chose its address: it may well be on this machine."""
    limits = WebhookLimits(deadline_seconds=resources.config.judge_seconds)
    fetcher = HttpCourier(resources.resolver, allow_private=True, limits=limits)
    stack.push_async_callback(fetcher.close)
    resources.loops.run(stack, "judge", Judge(resources, fetcher).run)
