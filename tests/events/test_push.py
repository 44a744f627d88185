"""Browsers that ring: encrypted for the browser alone, told of holds that their user may decide."""

import asyncio
import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import ECKey

from postroom.events import web_push
from postroom.events.web_push import from_base64, to_base64
from tests.api.endpoint import Endpoint, running_endpoint
from tests.api.test_dashboard import browser, signed_in
from tests.api.test_oauth import person
from tests.api.test_people import audit_of
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.events.test_notifications import held_inbox, hold, until_told

PAGE = "/app/settings/devices"
SECONDS = 120


class Phone:
    """A browser as its maker's service sees it: it has a key, and reads what comes (RFC 8291)."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)
        self._point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def form(self, **changed: str) -> dict[str, str]:
        keys = {"p256dh": to_base64(self._point), "auth": to_base64(self._auth)}
        return {"endpoint": self.endpoint, **keys, **changed}

    def read(self, body: bytes) -> dict[str, Any]:
        salt, size, point = body[:16], int.from_bytes(body[16:20], "big"), body[21 : 21 + body[20]]
        assert len(body) <= size
        sender = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        shared = self._key.exchange(ec.ECDH(), sender)
        secret = first_of(shared, self._auth, b"WebPush: info\0" + self._point + point)
        key = first_of(secret, salt, b"Content-Encoding: aes128gcm\0")[:16]
        nonce = first_of(secret, salt, b"Content-Encoding: nonce\0")[:12]
        plain = AESGCM(key).decrypt(nonce, body[21 + body[20] :], None)
        assert plain[-1:] == b"\x02"
        read: dict[str, Any] = json.loads(plain[:-1])
        return read


def first_of(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """The first block of HKDF (RFC 5869), which is all that is needed."""
    drawn = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(drawn, info + b"\x01", hashlib.sha256)


def test_the_example_of_the_standard_comes_out_byte_by_byte() -> None:
    """RFC 8291, appendix A."""
    secret = int.from_bytes(from_base64("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big")
    body = web_push.encrypt(
        b"When I grow up, I want to be a watermelon",
        from_base64(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
        ),
        from_base64("BTBZMqHH6r4Tts7J_aSIgg"),
        ec.derive_private_key(secret, ec.SECP256R1()),
        from_base64("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert to_base64(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w"
        "EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


async def key_of(page: httpx2.AsyncClient) -> str:
    found = re.search(r'data-push="([\w-]+)"', (await page.get(PAGE)).text)
    assert found is not None
    return found[1]


async def add(page: httpx2.AsyncClient, phone: Phone) -> None:
    answer = await page.post(PAGE, data=phone.form())
    assert answer.status_code == 303, answer.text


async def devices_of(server: Server) -> list[Any]:
    return await server.resources.db.read(lambda tx: tx.all("select * from push_subscriptions"))


async def until(server: Server, is_so: Callable[[list[Any]], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so(await devices_of(server)):
            await asyncio.sleep(0.02)


@pytest.mark.sqlite_alone
async def test_a_hold_rings_the_phones_of_whoever_may_decide_it(server: Server) -> None:
    inbox_id = await held_inbox(server)
    other_pod = (await server.api.post("/v1/pods", json={"name": "Elsewhere"})).json()["id"]
    async with (
        running_endpoint() as service,
        running_endpoint() as of_others,
        person(server, "approver") as approver,
        person(server, "viewer") as viewer,
        person(server, "admin", podIds=[other_pod]) as elsewhere,
    ):
        phone = Phone(service.url)
        await add(approver, phone)
        await add(viewer, Phone(of_others.url))
        await add(elsewhere, Phone(f"{of_others.url}/second"))
        message_id = await hold(server, inbox_id, "Offer 7")
        await until_told(server, service, 1)
        headers, body = service.requests[0]
        told = phone.read(body)
        assert told["title"] == "An email needs approval"
        assert told["body"] == "Offer 7"
        assert told["path"] == f"/app/approvals?message={message_id}"
        assert b"Offer" not in body
        assert (headers["content-encoding"], headers["urgency"]) == ("aes128gcm", "high")
        require_signed(headers["authorization"], service, await key_of(approver), server.clock.now())
        await until(server, lambda rows: any(row["told_at"] for row in rows))
        for number in range(3):
            await hold(server, inbox_id, f"Mail {number}")
        await until_told(server, service, 2)
        assert phone.read(service.requests[1][1])["title"] == "3 emails need approval"
        assert of_others.requests == []
    assert len(await audit_of(server, "device.added")) == 3


def require_signed(authorization: str, service: Endpoint, key: str, now: int) -> None:
    """RFC 8292: a token for this one service, by the key that the page has shown the browser."""
    found = re.fullmatch(r"vapid t=([\w.-]+), k=([\w-]+)", authorization)
    assert found is not None
    assert found[2] == key
    point = from_base64(key)
    public = ECKey.import_key(
        {"kty": "EC", "crv": "P-256", "x": to_base64(point[1:33]), "y": to_base64(point[33:])}
    )
    claims = jwt.decode(found[1], public, algorithms=["ES256"]).claims
    assert service.url.startswith(claims["aud"])
    assert now // 1000 < claims["exp"] <= now // 1000 + 24 * 3600
    assert claims["sub"] == "mailto:postmaster@postroom.localhost"


async def test_a_failure_is_shown_and_a_browser_that_has_ended_rings_no_more(server: Server) -> None:
    inbox_id = await held_inbox(server)
    async with running_endpoint() as service, person(server, "approver") as page:
        service.answers = [b"403 Forbidden", b"410 Gone"]
        await add(page, Phone(service.url))
        await hold(server, inbox_id, "First")
        await until_told(server, service, 1)
        await until(server, lambda rows: rows[0]["last_error"] is not None)
        assert "403" in (await page.get(PAGE)).text
        await hold(server, inbox_id, "Second")
        await until_told(server, service, 2)
        await until(server, lambda rows: rows[0]["ended_at"] is not None)
        assert "The browser ended it" in (await page.get(PAGE)).text
        await hold(server, inbox_id, "Third")
        waiting = await server.resources.db.read(lambda tx: tx.all("select * from notifications"))
        assert len(waiting) == 2
        await add(page, Phone(service.url))  # switched on again there
        assert [row["ended_at"] for row in await devices_of(server)] == [None]


async def test_a_device_is_its_user_s_alone_and_ends_with_him(server: Server) -> None:
    async with person(server, "approver") as ann, person(server, "viewer") as bob:
        phone = Phone("http://127.0.0.1:9/push")
        await add(ann, phone)
        [device] = await devices_of(server)
        assert (await bob.post(f"{PAGE}/{device['id']}/remove")).status_code == 404
        await add(bob, phone)  # the same browser, where somebody else has signed in
        [device] = await devices_of(server)
        assert (await ann.post(f"{PAGE}/{device['id']}/remove")).status_code == 404
        users = (await server.api.get("/v1/users")).json()["data"]
        [viewer] = [user for user in users if user["role"] == "viewer"]
        assert (await server.api.delete(f"/v1/users/{viewer['id']}")).status_code == 204
        assert await devices_of(server) == []


@pytest.mark.sqlite_alone
async def test_what_no_browser_subscribes_with_is_refused(server: Server) -> None:
    phone = Phone("http://127.0.0.1:9/push")
    async with person(server, "approver") as page, signed_in(server) as of_a_key:
        for changed in (
            {"p256dh": "AAAA"},
            {"p256dh": to_base64(b"\x04" + bytes(64))},
            {"auth": "short"},
            {"auth": "€"},
        ):
            assert (await page.post(PAGE, data=phone.form(**changed))).status_code == 400, changed
        for url in ("ftp://push.example", "http://user@push.example/", "nothing"):
            assert (await page.post(PAGE, data=phone.form(endpoint=url))).status_code == 422, url
        assert (await of_a_key.post(PAGE, data=phone.form())).status_code == 403
        assert "Sign in as a user to add devices" in (await of_a_key.get(PAGE)).text
        for number in range(20):
            await add(page, Phone(f"http://127.0.0.1:9/{number}"))
        assert (await page.post(PAGE, data=phone.form())).status_code == 400


@pytest.mark.sqlite_alone
async def test_an_endpoint_leads_to_no_private_address(tmp_path: Any, clock: FakeClock) -> None:
    config = settings(tmp_path, ALLOW_PRIVATE_WEBHOOKS="off")
    async with running_server(config, clock) as server, person(server, "approver") as page:
        for url in ("https://127.0.0.1/push", "https://10.0.0.1/push", "https://localhost/push"):
            assert (await page.post(PAGE, data=Phone(url).form())).status_code == 422, url


@pytest.mark.sqlite_alone
async def test_the_page_can_be_installed(server: Server) -> None:
    async with browser(server) as page:
        script = await page.get("/app/service-worker.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert (script.headers["service-worker-allowed"], script.headers["cache-control"]) == (
            "/app",
            "no-cache",
        )
        manifest = (await page.get("/app/manifest.webmanifest")).json()
        assert (await page.get(manifest["icons"][0]["src"])).status_code == 200
        assert (manifest["start_url"], manifest["display"]) == ("/app", "standalone")
