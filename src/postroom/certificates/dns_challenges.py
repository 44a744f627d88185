"""Answers DNS-01 challenges (RFC 8555 section 8.4): a TXT record at the DNS provider."""

import asyncio
import base64
import hashlib
from collections.abc import Sequence

from postroom import log
from postroom.certificates.acme import AcmeError
from postroom.certificates.certificates import OpenChallenge
from postroom.dns_providers.zone import DnsProvider, DnsProviderError, Zone
from postroom.net.dns import DnsTemporary, Resolver

TXT = "TXT"
VISIBLE_SECONDS, PAUSE_SECONDS, ANSWER_SECONDS = 60.0, 1.0, 3.0
SERVERS = 8  # of a zone, asked whether they have the record


class DnsChallenges:
    def __init__(self, provider: DnsProvider, resolver: Resolver) -> None:
        self._provider, self._resolver = provider, resolver
        self._shown: list[tuple[Zone, str, str]] = []

    async def covers(self, names: Sequence[str]) -> bool:
        """Return True if the provider has the zones of all names; its failure counts as no."""
        try:
            return all([await self._provider.find_zone(name) for name in names])
        except DnsProviderError as error:
            log.get().error("the DNS provider cannot be asked", reason=error.reason)
            return False

    async def show(self, challenge: OpenChallenge) -> None:
        """Add the record and wait until the zone's servers give it. Raises AcmeError."""
        name, value = f"_acme-challenge.{challenge.name}", to_value(challenge.key_authorization)
        try:
            zone = await self._provider.find_zone(name)
            if zone is None:
                raise AcmeError(f"The DNS provider has no zone for {challenge.name}.")
            there = await self._provider.read(zone, name, TXT)
            self._shown.append((zone, name, value))
            await self._provider.write(zone, name, TXT, [*there, value])
        except DnsProviderError as error:
            raise AcmeError(error.reason) from error
        await self._wait_until_visible(zone, name, value)

    async def hide(self) -> None:
        """Remove the records that were added; one that stays does no harm."""
        shown, self._shown = self._shown, []
        for zone, name, value in shown:
            try:
                there = await self._provider.read(zone, name, TXT)
                await self._provider.write(zone, name, TXT, [each for each in there if each != value])
            except DnsProviderError as error:
                log.get().error("a DNS record stays", name=name, reason=error.reason)

    async def _wait_until_visible(self, zone: Zone, name: str, value: str) -> None:
        """Wait up to a minute until the record is visible.

        The authority may see servers that this machine cannot.
        """
        try:
            async with asyncio.timeout(VISIBLE_SECONDS):
                servers = await self._find_servers(zone)
                while True:
                    if all([await _has(server, name, value) for server in servers]):
                        return
                    await asyncio.sleep(PAUSE_SECONDS)
        except (TimeoutError, DnsTemporary):
            log.get().error("a DNS record is not visible yet", name=name)

    async def _find_servers(self, zone: Zone) -> list[str]:
        hosts = (await self._resolver.nameservers(zone.name))[:SERVERS]
        return [address for host in hosts for address in (await self._resolver.addresses(host))[:1]]


def to_value(key_authorization: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(key_authorization.encode()).digest()).rstrip(b"=").decode()


async def _has(server: str, name: str, value: str) -> bool:
    """Ask the server by a resolver without a cache."""
    resolver = Resolver([server], deadline_seconds=ANSWER_SECONDS)
    try:
        return value.encode() in await resolver.txt(name)
    except DnsTemporary:
        return False
    finally:
        await resolver.close()
