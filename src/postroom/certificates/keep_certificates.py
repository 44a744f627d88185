"""Keeps certificates valid: one node orders them, and every node takes them into use."""

from typing import TYPE_CHECKING

from postroom.certificates import certificates
from postroom.certificates.certificates import OpenChallenge, StoredCertificate
from postroom.certificates.in_use import CertificatesInUse
from postroom.certificates.wanted import list_wanted
from postroom.clock import MINUTE
from postroom.queue import leader_leases
from postroom.resources import Resources

if TYPE_CHECKING:
    from postroom.certificates.acme import AuthorityFetcher
    from postroom.certificates.dns_challenges import DnsChallenges

BELL = "certificates"
LEASE = "certificates"
LEASE_HELD = 10 * MINUTE
PAUSE_SECONDS = 60.0
WANTED_EVERY = 10 * MINUTE


class CertificateKeeper:
    def __init__(
        self,
        resources: Resources,
        courier: "AuthorityFetcher",
        in_use: CertificatesInUse,
        has_http: bool,
        dns: "DnsChallenges | None",
    ) -> None:
        self._resources, self._courier, self._in_use, self._dns = resources, courier, in_use, dns
        # TLS-ALPN-01 is second choice: for a moment clients meet the certificate that answers the challenge.
        self._type = certificates.HTTP_01 if has_http else certificates.TLS_ALPN_01
        self._asks_dns = dns is not None and not has_http
        self._wanted_at = -WANTED_EVERY

    async def run(self) -> None:
        """Runs until cancelled. The certificates of the last run are in use at once."""
        bell = self._resources.db.listen(BELL)
        try:
            while True:
                await self._take_into_use()
                if await self._leads():
                    while await self._order_one():
                        await self._take_into_use()
                await bell.wait(PAUSE_SECONDS)
        finally:
            bell.close()

    async def _leads(self) -> bool:
        return await leader_leases.hold(self._resources, LEASE, LEASE_HELD)

    async def _take_into_use(self) -> None:
        issued = await self._resources.db.read(certificates.list_issued)
        if changed := self._in_use.find_changed(issued):
            await self._in_use.install(await self._resources.db.read(certificates.list_named, changed))
        await self._show_challenges()

    async def _show_challenges(self) -> None:
        if self._type == certificates.TLS_ALPN_01:
            now = self._resources.now()
            await self._in_use.show_challenges(await self._resources.db.read(certificates.list_tls, now))

    async def _publish(self, challenge: OpenChallenge) -> None:
        """Publish a challenge on all nodes, by a bell: the authority may come to any of them."""
        resources = self._resources
        if challenge.type == certificates.DNS_01 and self._dns is not None:
            await self._dns.show(challenge)
            return
        await resources.db.write(certificates.add_challenge, challenge, resources.now())
        await self._show_challenges()
        resources.db.ring(BELL)

    async def _choose(self, due: StoredCertificate) -> str:
        """Choose how to prove a name: by TLS if its zone is not ours to change."""
        if self._dns is not None and self._asks_dns and await self._dns.covers(due.names):
            return certificates.DNS_01
        return self._type

    async def _order_one(self) -> bool:
        """Returns True if one was due; the lease is extended before each, since an order takes a while."""
        resources, now = self._resources, self._resources.now()
        if now - self._wanted_at >= WANTED_EVERY:
            names = [each.name for each in await resources.db.read(certificates.list_all)]
            wanted = await list_wanted(resources, names)
            await resources.db.write(certificates.set_wanted, wanted, now)
            self._wanted_at = now
        due: StoredCertificate | None = await resources.db.read(certificates.find_due, now)
        if due is None or not await self._leads():
            return False
        from postroom.certificates.obtain import obtain  # few servers order one

        await obtain(resources, self._courier, due, await self._choose(due), self._publish)
        if self._dns is not None:
            await self._dns.hide()
        resources.db.ring(BELL)
        return True
