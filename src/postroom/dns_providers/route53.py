"""Amazon's Route 53: XML, signed with Signature Version 4."""

import datetime
import hashlib
import hmac
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from postroom.dns_providers.asking import explain, fetch, segment
from postroom.dns_providers.zone import (
    TTL_SECONDS,
    DnsProviderError,
    Zone,
    ancestors,
    from_text,
    to_text,
)
from postroom.external_mailboxes.fetching import Fetcher

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

BASE = "https://route53.amazonaws.com"
REGION, SERVICE = "us-east-1", "route53"
NAMESPACE = "https://route53.amazonaws.com/doc/2013-04-01/"
CHANGE = """<?xml version="1.0" encoding="UTF-8"?>
<ChangeResourceRecordSetsRequest xmlns="{namespace}"><ChangeBatch><Changes><Change><Action>{action}</Action>\
<ResourceRecordSet><Name>{name}.</Name><Type>{kind}</Type><TTL>{ttl}</TTL><ResourceRecords>{records}\
</ResourceRecords></ResourceRecordSet></Change></Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"""
RECORD = "<ResourceRecord><Value>{value}</Value></ResourceRecord>"
RecordSet = tuple[int, tuple[str, ...]]  # its TTL and its values, as zone files have them


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Route53:
    """The token is the id of an access key, a colon, and its secret."""

    def __init__(
        self,
        fetcher: Fetcher,
        token: str,
        base: str = BASE,
        now: Callable[[], datetime.datetime] = _now,
    ) -> None:
        self._fetcher, self._base, self._now = fetcher, base, now
        self._key_id, _, self._secret = token.partition(":")

    async def find_zone(self, name: str) -> Zone | None:
        for each in ancestors(name):
            asked = urlencode({"dnsname": f"{each}.", "maxitems": 10})
            for found in await self._ask("GET", f"/2013-04-01/hostedzonesbyname?{asked}", "HostedZone"):
                is_private = _text(found, "PrivateZone") == "true"
                if _text(found, "Name").lower().rstrip(".") == each and not is_private:
                    return Zone(_text(found, "Id").removeprefix("/hostedzone/"), each)
        return None

    async def read(self, zone: Zone, name: str, kind: str) -> tuple[str, ...]:
        _, values = await self._find(zone, name, kind)
        return tuple(from_text(kind, value) for value in values)

    async def write(self, zone: Zone, name: str, kind: str, values: Sequence[str]) -> None:
        """Write the records. A removal has to name the existing ones, to the last value and TTL."""
        action, ttl, texts = "UPSERT", TTL_SECONDS, tuple(to_text(kind, value) for value in values)
        if not values:
            action = "DELETE"
            ttl, texts = await self._find(zone, name, kind)
            if not texts:
                return
        records = "".join(RECORD.format(value=escape(text)) for text in texts)
        body = CHANGE.format(
            namespace=NAMESPACE, action=action, name=escape(name), kind=kind, ttl=ttl, records=records
        )
        await self._ask(
            "POST", f"/2013-04-01/hostedzone/{segment(zone.id)}/rrset/", "ChangeInfo", body.encode()
        )

    async def _find(self, zone: Zone, name: str, kind: str) -> RecordSet:
        asked = urlencode({"maxitems": 1, "name": f"{name}.", "type": kind})
        path = f"/2013-04-01/hostedzone/{segment(zone.id)}/rrset?{asked}"
        for found in await self._ask("GET", path, "ResourceRecordSet"):
            if _text(found, "Name").lower().rstrip(".") == name and _text(found, "Type") == kind:
                ttl = _text(found, "TTL")
                values = tuple(str(each.text or "") for each in found.iter(f"{{{NAMESPACE}}}Value"))
                return int(ttl) if ttl.isdecimal() else TTL_SECONDS, values
        return TTL_SECONDS, ()

    async def _ask(self, method: str, path: str, element: str, body: bytes = b"") -> "list[Element]":
        """Return the elements of this name; none for 404."""
        import defusedxml.ElementTree

        headers = self._sign(method, path, body)
        fetched = await fetch("Route 53", self._fetcher, method, f"{self._base}{path}", headers, body)
        if fetched.status == 404:
            return []
        if fetched.status >= 300:
            raise DnsProviderError(explain("Route 53", fetched))
        try:
            root = defusedxml.ElementTree.fromstring(fetched.body)
        except (defusedxml.DefusedXmlException, SyntaxError, ValueError) as error:
            raise DnsProviderError("Route 53 gives an answer that cannot be read.") from error
        return list(root.iter(f"{{{NAMESPACE}}}{element}"))

    def _sign(self, method: str, path: str, body: bytes) -> dict[str, str]:
        host, moment = urlsplit(self._base).netloc, self._now().strftime("%Y%m%dT%H%M%SZ")
        return sign(self._key_id, self._secret, method, host, path, body, moment)


def sign(
    key_id: str, secret: str, method: str, host: str, path: str, body: bytes, moment: str
) -> dict[str, str]:
    """Return the headers of a request signed with Signature Version 4; the query is sorted already."""
    bare, _, query = path.partition("?")
    payload = hashlib.sha256(body).hexdigest()
    signed = f"host:{host}\nx-amz-date:{moment}\n"
    canonical = "\n".join([method, quote(bare), query, signed, "host;x-amz-date", payload])
    scope = f"{moment[:8]}/{REGION}/{SERVICE}/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
    credential = f"Credential={key_id}/{scope}, SignedHeaders=host;x-amz-date, Signature={signature}"
    return {"X-Amz-Date": moment, "Authorization": f"AWS4-HMAC-SHA256 {credential}"}


def _text(element: "Element", name: str) -> str:
    found = next(element.iter(f"{{{NAMESPACE}}}{name}"), None)
    return "" if found is None else str(found.text or "")
