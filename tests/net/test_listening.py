"""One listener on `::` takes IPv6 and IPv4 clients, and each is known by its own address."""

import asyncio
import socket
from pathlib import Path

import pytest

from postroom.net.listening import ACCEPTED_AT_ONCE, close_all, listen_on, peer_of, with_copies
from tests.conftest import running_server, settings
from tests.doubles import FakeClock
from tests.plain_transport import http_client
from tests.raw_mails import raw_mail
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone
TURNS = 4


def families_taken(host: str) -> list[str]:
    sockets = listen_on(host, 0, 5)
    port, taken = sockets[0].getsockname()[1], []
    for address in ("127.0.0.1", "::1"):
        try:
            socket.create_connection((address, port), 5).close()
        except ConnectionRefusedError:
            continue
        taken.append(address)
    close_all(sockets)
    return taken


def test_only_the_address_for_all_takes_both_kinds() -> None:
    assert families_taken("::") == ["127.0.0.1", "::1"]
    assert families_taken("::1") == ["::1"]
    assert families_taken("0.0.0.0") == ["127.0.0.1"]


async def connections_accepted(sockets: list[socket.socket]) -> int:
    """Return how many that wait are accepted in a few turns of the loop."""
    loop = asyncio.get_running_loop()
    accepted: list[asyncio.BaseTransport] = []

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(transport)

    port = sockets[0].getsockname()[1]
    servers = [await loop.create_server(Accepted, sock=each) for each in sockets]
    clients = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(2 * ACCEPTED_AT_ONCE)]
    for _ in range(TURNS):
        await asyncio.sleep(0)
    count = len(accepted)
    await until(lambda: len(accepted) == len(clients))
    for transport in accepted:
        transport.close()
    for server in servers:
        server.close()
    for client in clients:
        client.close()
    return count


async def test_a_turn_of_the_loop_accepts_many_connections() -> None:
    (alone,) = listen_on("127.0.0.1", 0, 100)
    assert await connections_accepted([alone]) <= TURNS
    (listener,) = listen_on("127.0.0.1", 0, 100)
    assert await connections_accepted(with_copies(listener)) > TURNS


def test_what_could_not_be_shared_is_closed_again() -> None:
    (first,) = listen_on("127.0.0.1", 0, 5)
    port = first.getsockname()[1]
    with pytest.raises(OSError, match="in use"):
        listen_on("::", port, 5)
    first.close()
    close_all(listen_on("::", port, 5))


def test_a_client_is_known_by_its_usual_address() -> None:
    assert peer_of(("::ffff:192.0.2.7", 25, 0, 0)) == "192.0.2.7"
    assert peer_of(("2001:db8::7", 25, 0, 0)) == "2001:db8::7"
    assert peer_of(("::ffff:c000:207", 25, 0, 0)) == "::ffff:c000:207"
    assert peer_of("") == "unknown"


async def test_a_server_on_both_notes_ipv4_addresses_as_such(tmp_path: Path, clock: FakeClock) -> None:
    both = dict.fromkeys(("SMTP", "IMAP", "HTTP"), "[::]:0")
    async with running_server(settings(tmp_path, **both), clock) as server:
        await server.new_inbox("hello")
        await server.deliver(raw_mail("Hi"), "hello")
        message = (await server.next_event())["message"]
        raw = await server.api.get(f"/v1/messages/{message['id']}/raw")
        port = server.resources.config.http.port
        own = {"Authorization": f"Bearer {server.token}"}
        async with http_client(f"http://127.0.0.1:{port}", own) as client:
            await client.post("/v1/pods", json={"name": "one"})
        entries = (await server.api.get("/v1/audit?action=pod.created")).json()["data"]
    assert [each["address"] for each in entries] == ["127.0.0.1"]
    assert "[127.0.0.1]" in raw.text.partition("\n\n")[0]
    assert "ffff" not in raw.text.partition("\n\n")[0]
