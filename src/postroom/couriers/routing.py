"""Which servers take mail for a domain, in the order to try them (RFC 5321 section 5.1)."""

import asyncio
import random
from collections.abc import Callable
from itertools import groupby

from msgspec import Struct

from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.public_addresses import is_public
from postroom.outward.courier import DeliveryError

MAX_ADDRESSES = 5  # RFC 5321 section 5.1 asks for at least two
# Looked up at most, so that a zone with hundreds of dead hosts costs little.
_MAX_HOSTS = 10  # a domain may list hundreds, each with a lookup


class Hop(Struct, frozen=True):
    """One address of one server."""

    host: str
    ip: str


async def find_hops(
    resolver: Resolver,
    domain: str,
    *,
    allow_private: bool = False,
    shuffle: Callable[[list[str]], None] = random.shuffle,
) -> list[Hop]:
    """Return 1 to MAX_ADDRESSES hops. Raises DeliveryError if there is none."""
    hosts = (await _hosts(resolver, domain, shuffle))[:_MAX_HOSTS]
    answers = await asyncio.gather(*(resolver.addresses(host) for host in hosts), return_exceptions=True)
    found: list[Hop] = []
    unanswered: DnsTemporary | None = None
    for host, answer in zip(hosts, answers, strict=True):
        if isinstance(answer, DnsTemporary):
            unanswered = answer
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found += [Hop(host, ip) for ip in answer]
    hops = [hop for hop in found if allow_private or is_public(hop.ip)]
    if not hops:
        raise _no_way(domain, bool(found), unanswered)
    return hops[:MAX_ADDRESSES]


async def _hosts(resolver: Resolver, domain: str, shuffle: Callable[[list[str]], None]) -> list[str]:
    try:
        records = await resolver.mx(domain)
        if not records and not await resolver.exists(domain):
            raise DeliveryError(f"unknown domain {domain}", permanent=True, enhanced="5.1.2")
    except DnsTemporary as error:
        raise _unanswered(domain) from error
    if not records:
        return [domain]  # the domain itself is the host (RFC 5321 section 5.1)
    hosts = _in_order(records, shuffle)
    if not hosts:  # the null MX of RFC 7505
        raise DeliveryError(f"the domain {domain} accepts no email", permanent=True, enhanced="5.1.10")
    return hosts


def _in_order(records: tuple[tuple[int, str], ...], shuffle: Callable[[list[str]], None]) -> list[str]:
    hosts: list[str] = []
    for _, group in groupby(sorted(records), key=lambda record: record[0]):
        equals = [host for _, host in group if host]
        shuffle(equals)  # RFC 5321 section 5.1: to spread the load over equals
        hosts += equals
    return list(dict.fromkeys(hosts))


def _no_way(domain: str, has_addresses: bool, unanswered: DnsTemporary | None) -> DeliveryError:
    if unanswered is not None:
        return _unanswered(domain)
    if has_addresses:
        # A domain with such an address wants no mail from outside; days of retries would not change that.
        reason = f"the mail servers of {domain} have no public address"
    else:
        reason = f"the domain {domain} has no mail server"
    return DeliveryError(reason, permanent=True, enhanced="5.4.4")


def _unanswered(domain: str) -> DeliveryError:
    return DeliveryError(f"the DNS gave no answer for {domain}", permanent=False, enhanced="4.4.3")
