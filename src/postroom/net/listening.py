"""Listening sockets. On the IPv6 address `::` they take IPv4 connections too, as most servers do."""

import socket
from collections.abc import Sequence

EVERY_IPV6 = "::"
ACCEPTED_AT_ONCE = 16  # connections in a turn of the loop


def listen_on(host: str, port: int, backlog: int, *, is_shared: bool = False) -> list[socket.socket]:
    """Return a socket for each address of the host, all on the same port, also if the system chose it.

    Shared ones join others on the same port (SO_REUSEPORT). Raises OSError or UnicodeError.
    """
    bound: list[socket.socket] = []
    try:
        for family, address in addresses(host, port):
            chosen = port or (bound[0].getsockname()[1] if bound else 0)
            where = (address[0], chosen, *address[2:])
            bound.append(_open(family, where, backlog, is_shared))
    except OSError:
        close_all(bound)
        raise
    return bound


def addresses(host: str, port: int) -> list[tuple[int, tuple[str, int]]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))  # type: ignore[misc]


def _open(family: int, address: tuple[str, int], backlog: int, is_shared: bool) -> socket.socket:
    takes_both = family == socket.AF_INET6 and address[0] == EVERY_IPV6 and socket.has_dualstack_ipv6()
    return socket.create_server(
        address, family=family, backlog=backlog, reuse_port=is_shared, dualstack_ipv6=takes_both
    )


def close_all(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()


def with_copies(listener: socket.socket) -> list[socket.socket]:
    """Return the listener with more descriptors of it, for uvloop, which accepts one of each in a turn.

    A busy loop makes few turns: new connections would wait for seconds while the others go on.
    """
    return [listener, *(listener.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]


def peer_of(peername: object) -> str:
    """Return the client's address; an IPv4 one as such, also from a socket that takes both."""
    host = str(peername[0]) if isinstance(peername, tuple) else "unknown"
    return host[len(MAPPED) :] if host.startswith(MAPPED) and "." in host else host


MAPPED = "::ffff:"
