"""Finds out what speaks for junk in an examination: the words of an email, and the server that brought it."""

import asyncio

from msgspec import Struct

from postroom.inward.junk import models, words
from postroom.inward.junk.lists import ask_lists
from postroom.inward.junk.services import ask_services_once
from postroom.inward.junk.weighing import Evidence
from postroom.inward.sender_checks import SendingServer
from postroom.net import public_addresses
from postroom.net.dns import DnsTemporary, Resolver
from postroom.processes import pools
from postroom.resources import Resources
from postroom_mail.html.page import HtmlPage
from postroom_mail.mime.parse import ParsedMail

NAME_SECONDS = 3.0


class JunkContent(Struct, frozen=True):
    raw: bytes
    mail: ParsedMail
    page: HtmlPage


async def find_evidence(
    resources: Resources, inbox_id: str, content: JunkContent, peer: SendingServer
) -> Evidence:
    """Return the evidence. Email from inside, which has no `peer_ip`, is not weighed."""
    if peer.peer_ip == "":
        return Evidence(0.0, is_from_inside=True)
    taught = await resources.db.read(models.find_for_inbox, inbox_id)
    config = resources.config
    score, has_name, services, listed = await asyncio.gather(
        pools.READING.run(words.score, content.raw, content.mail, content.page, taught),
        has_reverse_name(resources.resolver, peer.peer_ip),
        ask_services_once(resources, content.raw, peer),
        ask_lists(
            resources.resolver,
            config.address_lists,
            config.link_lists,
            peer.peer_ip,
            content.page,
            resources.services,
            resources.now(),
        ),
    )
    is_public = public_addresses.is_public(peer.peer_ip)
    return Evidence(
        score,
        services,
        listed,
        has_reverse_name=has_name,
        has_odd_helo=is_public and "." not in peer.helo,
    )


async def has_reverse_name(resolver: Resolver, ip: str) -> bool:
    """Return whether the DNS has a name for this address; without an answer in time it counts as named."""
    if not public_addresses.is_public(ip):
        return True
    try:
        async with asyncio.timeout(NAME_SECONDS):
            return bool(await resolver.ptr(ip))
    except (DnsTemporary, TimeoutError):
        return True
