"""Where a session writes; whoever writes much waits until the client has taken it."""

from typing import Protocol


class ImapOutput(Protocol):
    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None:
        """Returns when there is room again. Raises ClientGone when there will be none."""
        ...


class ClientGone(Exception):
    """The connection is closed, or the client reads nothing any more."""
