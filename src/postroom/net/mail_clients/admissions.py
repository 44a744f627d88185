"""Limits of connections, in total, by address and by key."""

from collections import Counter
from typing import Generic, TypeVar

from postroom.net.mail_clients.limits import ClientLimits
from postroom.net.proxies import network_of

T = TypeVar("T")


class Admissions(Generic[T]):
    """The open connections of one server."""

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self.is_closed = False
        self._networks: dict[T, str] = {}
        self._per_network: Counter[str] = Counter()
        self._keys: dict[T, str] = {}
        self._per_key: Counter[str] = Counter()

    def admit(self, connection: T, address: str) -> bool:
        network = network_of(address)
        is_full = len(self._networks) >= self._limits.max_connections
        is_crowded = self._per_network[network] >= self._limits.max_connections_per_address
        if self.is_closed or is_full or is_crowded:
            return False
        self._networks[connection] = network
        self._per_network[network] += 1
        return True

    def admit_key(self, connection: T, key_id: str) -> bool:
        if self._per_key[key_id] >= self._limits.max_connections_per_key:
            return False
        self._keys[connection] = key_id
        self._per_key[key_id] += 1
        return True

    def release(self, connection: T) -> None:
        """Does nothing for a connection that was refused or released before."""
        _give_back(self._networks, self._per_network, connection)
        _give_back(self._keys, self._per_key, connection)

    def all(self) -> list[T]:
        return list(self._networks)

    def count(self) -> int:
        return len(self._networks)


def _give_back(held: dict[T, str], counts: Counter[str], connection: T) -> None:
    name = held.pop(connection, None)
    if name is not None:
        counts[name] -= 1
        if counts[name] <= 0:
            del counts[name]
