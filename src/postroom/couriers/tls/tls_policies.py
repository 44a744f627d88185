"""MTA-STS policies of recipient domains (RFC 8461): found by DNS, fetched by HTTPS, cached."""

import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from postroom import log
from postroom.external_mailboxes.fetching import Fetcher, FetchError
from postroom.net.dns import DnsTemporary, Resolver
from postroom_mail.authentication import mta_sts
from postroom_mail.authentication.mta_sts import StsPolicy

REMEMBERED = 10_000  # policies; the oldest is fetched again
FAILURE_SECONDS = 300.0  # before a failed fetch of a policy is retried (RFC 8461 section 3.3)
OK = 200
FETCH_ERROR, INVALID, UNPROVED = "sts-policy-fetch-error", "sts-policy-invalid", "sts-webpki-invalid"


class KnownPolicy(Struct, frozen=True):
    """`policy` is None if none could be fetched for this identity; `fault` says why (RFC 8460)."""

    identity: str
    policy: StsPolicy | None
    ends_at: float
    fault: str = ""


class TlsPolicies:
    def __init__(
        self, resolver: Resolver, fetcher: Fetcher, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._resolver = resolver
        self._fetcher = fetcher
        self._monotonic = monotonic
        self._known: OrderedDict[str, KnownPolicy] = OrderedDict()  # in the order of last use

    async def find(self, domain: str) -> StsPolicy | None:
        """Return the newest policy; while none can be found, the cached one counts (section 5.1)."""
        known = self._recall(domain)
        try:
            identity = mta_sts.read_identity(await self._resolver.txt(f"_mta-sts.{domain}"))
        except DnsTemporary:
            identity = None
        if identity is None or (known is not None and known.identity == identity):
            return None if known is None else known.policy
        policy, fault = await self._fetch(domain)
        if policy is None and known is not None and known.policy is not None:
            return known.policy
        seconds = FAILURE_SECONDS if policy is None else policy.max_age_seconds
        self._remember(domain, KnownPolicy(identity, policy, self._monotonic() + seconds, fault))
        return policy

    def fault_of(self, domain: str) -> str:
        """Return why no policy was found although there should be one; none while an older one counts."""
        known = self._known.get(domain)
        return "" if known is None else known.fault

    async def _fetch(self, domain: str) -> tuple[StsPolicy | None, str]:
        url = f"https://mta-sts.{domain}/.well-known/mta-sts.txt"
        try:
            answer = await self._fetcher.fetch("GET", url, {}, limit=mta_sts.POLICY_BYTES)
        except FetchError as error:
            log.get().seldom("an MTA-STS policy could not be fetched", domain=domain, reason=str(error))
            return None, UNPROVED if error.is_unproved else FETCH_ERROR
        if answer.status != OK:  # no redirect is followed (RFC 8461 section 3.3)
            return None, FETCH_ERROR
        policy = mta_sts.read_policy(answer.body)
        return policy, INVALID if policy is None else ""

    def _recall(self, domain: str) -> KnownPolicy | None:
        known = self._known.get(domain)
        if known is None or known.ends_at <= self._monotonic():
            self._known.pop(domain, None)
            return None
        self._known.move_to_end(domain)
        return known

    def _remember(self, domain: str, known: KnownPolicy) -> None:
        self._known[domain] = known
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
