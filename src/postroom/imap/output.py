"""Where a session writes; a long answer waits until the client has read enough."""

from typing import Protocol


class ImapOutput(Protocol):
    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None:
        """Returns when there is room again. Raises ClientGone if there will be none."""
        ...


class ClientGone(Exception):
    """The connection is closed, or the client no longer reads."""
