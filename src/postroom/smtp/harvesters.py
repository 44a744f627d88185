"""Clients that guess addresses: they are answered slowly, and after too many guesses not at all for a while.

The counts are of one process, and bounded. So is the number of clients that wait: slowing them must not
use up the connections of others.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from postroom import log
from postroom.net import public_addresses
from postroom.net.proxies import network_of

FREE = 5  # unknown recipients of a network before its answers are slow
MOST = 50  # before all its recipients are put off
WINDOW_SECONDS = 600.0
SLOW_SECONDS = 5.0
MOST_SLOW = 20
MOST_NETWORKS = 10_000


class Guesses(Struct):
    since: float
    count: int = 0


class Harvesters:
    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or asyncio.get_running_loop().time
        self._networks: OrderedDict[str, Guesses] = OrderedDict()
        self._slow = 0
        self._stopping = asyncio.Event()

    def is_put_off(self, peer_ip: str) -> bool:
        """Return whether to put off a peer, for known and unknown recipients alike.

        The answer must not reveal which exist.
        """
        guesses = self._networks.get(network_of(peer_ip))
        return guesses is not None and guesses.count >= MOST and self._is_recent(guesses)

    def record_unknown(self, peer_ip: str) -> bool:
        """Counts an unknown recipient; True if its answer is to be slow. Private networks are not counted."""
        if not public_addresses.is_public(peer_ip):
            return False
        network = network_of(peer_ip)
        guesses = self._networks.pop(network, None)
        if guesses is None or not self._is_recent(guesses):
            guesses = Guesses(self._clock())
        guesses.count += 1
        self._networks[network] = guesses
        if len(self._networks) > MOST_NETWORKS:
            self._networks.popitem(last=False)
        if guesses.count == MOST:
            log.get().info("a client guesses addresses and is put off", network=network)
        return guesses.count > FREE and self._slow < MOST_SLOW

    async def slow_down(self) -> None:
        self._slow += 1
        try:
            async with asyncio.timeout(SLOW_SECONDS):
                await self._stopping.wait()
        except TimeoutError:
            return
        finally:
            self._slow -= 1

    def close(self) -> None:
        """Answer those that wait, now."""
        self._stopping.set()

    def _is_recent(self, guesses: Guesses) -> bool:
        return self._clock() - guesses.since < WINDOW_SECONDS
