"""The webhook courier: one POST to a customer's endpoint, only to a checked address."""

import asyncio
import math
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from postroom.couriers.faults import describe, is_unproved
from postroom.couriers.lanes import Lanes
from postroom.external_mailboxes.fetching import Fetched, FetchError
from postroom.net.allowed_target import ForbiddenTarget, HasNoAddress, Target, resolve_target
from postroom.net.certificate import trusted_authorities
from postroom.net.dns import DnsTemporary, Resolver
from postroom.outward.courier import DeliveryError, WebhookAnswer
from postroom.processes import pools

if TYPE_CHECKING:
    import httpx2  # loaded with the first webhook: it would take most of a start

_MAX_ANSWER_BYTES = 64 * 1024
_EXCERPT_BYTES = 2048  # that the log of deliveries shows
_MAX_RETRY_AFTER_CHARACTERS = 64  # a number or a date (RFC 9110 section 10.2.3)
_MAX_RETRY_AFTER_SECONDS = 24 * 3600  # an endpoint must not put its events off for years
_OWN_HEADERS = {"User-Agent": "Postroom", "Accept": "*/*", "Accept-Encoding": "identity"}


class WebhookLimits(Struct, frozen=True):
    deadline_seconds: float = 15
    connect_seconds: float = 5  # for each address
    posts_per_endpoint: int = 4
    posts: int = 200


class HttpCourier:
    """Every post resolves, checks and connects again: endpoints share no connection, cookie or proxy."""

    def __init__(
        self,
        resolver: Resolver,
        *,
        allow_private: bool = False,
        limits: WebhookLimits | None = None,
        trusted: ssl.SSLContext | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._resolver = resolver
        self._allow_private = allow_private
        self._limits = limits or WebhookLimits()
        self._now = now
        self._lanes = Lanes(per_key=self._limits.posts_per_endpoint, overall=self._limits.posts)
        self._trusted = trusted
        self._transport: httpx2.AsyncHTTPTransport | None = None
        self._opening = asyncio.Lock()

    async def _open_transport(self) -> "httpx2.AsyncHTTPTransport":
        """Open the transport on first use, in a thread: loading the system's authorities takes a while."""
        async with self._opening:
            if self._transport is None:
                self._transport = await pools.ONCE.run(self._make_transport)
            return self._transport

    def _make_transport(self) -> "httpx2.AsyncHTTPTransport":
        """Keeps no connection: it would be found by its address alone, and be reused for another host there
        without checking that host's certificate.
        """
        import httpcore2
        import httpx2

        from postroom.couriers.bounded_network import BoundedNetwork

        trusted = self._trusted or trusted_authorities()
        transport = httpx2.AsyncHTTPTransport(verify=trusted)
        transport._pool = httpcore2.AsyncConnectionPool(  # httpx2 has no argument for the network below it
            ssl_context=trusted,
            max_connections=None,
            max_keepalive_connections=0,
            network_backend=BoundedNetwork(),
        )
        return transport

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer:
        """Raises DeliveryError if there is no answer. The deadline runs from when a slot is free."""
        async with self._lanes.enter(url):
            started_at = asyncio.get_running_loop().time()
            ends_at = started_at + self._limits.deadline_seconds
            try:
                async with asyncio.timeout_at(ends_at):
                    response = await self._request(await self._resolve(url), body, headers)
            except TimeoutError as error:
                reason = f"no answer within {self._limits.deadline_seconds:g} s"
                raise DeliveryError(reason, permanent=False) from error
            beginning = await _read_beginning(response, ends_at)
            return WebhookAnswer(
                response.status_code,
                round((asyncio.get_running_loop().time() - started_at) * 1000),
                _excerpt(beginning),
                parse_retry_after(response.headers.get("retry-after", ""), self._now()),
            )

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 1024 * 1024
    ) -> Fetched:
        """Request from an external server, checked like a webhook.

        Return its whole answer, or raise FetchError.
        """
        ends_at = asyncio.get_running_loop().time() + self._limits.deadline_seconds
        try:
            async with asyncio.timeout_at(ends_at):
                target = await self._resolve(url)
                response = await self._request(target, body, headers, method)
                body = await _read_whole(response, limit)
                return Fetched(response.status_code, body, response.headers)
        except TimeoutError:
            raise FetchError(f"No answer within {self._limits.deadline_seconds:g} s.") from None
        except DeliveryError as error:
            raise FetchError(f"{error.reason}.", is_unproved(error)) from None

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def _resolve(self, url: str) -> Target:
        try:
            return await resolve_target(self._resolver, url, self._allow_private)
        except ForbiddenTarget as error:
            raise DeliveryError(error.reason, permanent=not isinstance(error, HasNoAddress)) from error
        except DnsTemporary as error:
            raise DeliveryError("the DNS gave no answer for the host", permanent=False) from error

    async def _request(
        self, target: Target, body: bytes, headers: Mapping[str, str], method: str = "POST"
    ) -> "httpx2.Response":
        import httpx2

        transport = await self._open_transport()
        for ip in target.ips:
            try:
                request = self._make_request(target, ip, body, headers, method)
                return await transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = DeliveryError(f"no connection to {target.host}: {describe(error)}", permanent=False)
                failure.__cause__ = error
            except (httpx2.HTTPError, OSError) as error:
                raise DeliveryError(
                    f"{target.host} gave no answer: {describe(error)}", permanent=False
                ) from error
        raise failure

    def _make_request(
        self, target: Target, ip: str, body: bytes, headers: Mapping[str, str], method: str
    ) -> "httpx2.Request":
        """Connects to the checked address with the name of the host: no second look-up can redirect it."""
        import httpx2

        timeouts = {"connect": self._limits.connect_seconds, "read": None, "write": None, "pool": None}
        return httpx2.Request(
            method,
            target.url.copy_with(host=ip),
            headers={"Host": target.host_header, **_OWN_HEADERS, **headers},
            content=body,
            extensions={"sni_hostname": target.host, "timeout": timeouts},
        )


async def _read_whole(response: "httpx2.Response", limit: int) -> bytes:
    import httpx2

    content = bytearray()
    try:
        async with aclosing(response.aiter_raw()) as chunks:
            async for chunk in chunks:
                content += chunk
                if len(content) > limit:
                    raise FetchError(f"The answer is larger than {limit} bytes.")
    except httpx2.HTTPError as error:
        raise FetchError(f"The answer broke off: {describe(error)}.") from None
    finally:
        await response.aclose()
    return bytes(content)


def parse_retry_after(value: str, now: float) -> int | None:
    """Return seconds from a count or a date (RFC 9110, 10.2.3), at most a day; None for anything else."""
    value = value.strip()
    if len(value) > _MAX_RETRY_AFTER_CHARACTERS:
        return None
    if value.isascii() and value.isdigit():
        return min(int(value), _MAX_RETRY_AFTER_SECONDS)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return math.ceil(min(max(seconds, 0), _MAX_RETRY_AFTER_SECONDS))


async def _read_beginning(response: "httpx2.Response", ends_at: float) -> bytes:
    """Read what comes of the body in time. The status is known, so a truncated body does not matter."""
    import httpx2

    beginning = bytearray()
    try:
        async with asyncio.timeout_at(ends_at), aclosing(response.aiter_raw()) as chunks:
            async for chunk in chunks:
                beginning += chunk
                if len(beginning) >= _MAX_ANSWER_BYTES:
                    break
    except (httpx2.HTTPError, OSError):  # TimeoutError is one
        pass
    finally:
        await response.aclose()
    return bytes(beginning[:_EXCERPT_BYTES])


def _excerpt(beginning: bytes) -> str:
    text = beginning.decode("utf-8", "replace")
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)
