"""The bytes of an email on the wire: finds its end, removes the stuffed dots, repairs line ends and NUL."""

import io

_END = b"\r\n.\r\n"  # and nothing shorter: RFC 5321 section 4.1.1.4 forbids to take a bare LF for it
_STARTS_OF_END = (b"\r\n.\r", b"\r\n.", b"\r\n", b"\r")


class Body:
    """Reads one email in pieces of any size, in time linear in its bytes.

    Only CR LF . CR LF on the wire ends it, and only CR LF starts a line whose dot is stuffed: both are
    decided before anything is repaired, so that no repair can make up an end that others do not see.
    """

    __slots__ = ("_discards", "_held", "_is_at_start", "_lone_cr", "_received", "_stored")

    def __init__(self) -> None:
        # The CR LF of the DATA command lets a dot stand on the first line.
        self._held = b"\r\n"
        self._is_at_start = True
        self._lone_cr = b""
        self._discards = False
        self._received = 0
        self._stored = 0

    @property
    def size_bytes(self) -> int:
        """The larger of what came and what is stored: neither NUL nor lone line ends get past a limit."""
        return max(self._received, self._stored)

    def feed(self, data: bytes) -> tuple[bytes, bytes | None]:
        """Return the next bytes to store, and what follows the email, or None while it goes on."""
        data = self._held + data
        first_dot = data.find(b"\r\n.")
        end = data.find(_END, first_dot) if first_dot >= 0 else -1
        if end >= 0:
            return self._clean(data[: end + 2], first_dot), data[end + len(_END) :]
        self._held = _start_of_end(data)
        return self._clean(data[: len(data) - len(self._held)], first_dot), None

    def discard_rest(self) -> None:
        """Discards everything until the end of the mail."""
        self._discards = True

    def _clean(self, data: bytes, first_dot: int) -> bytes:
        if self._discards or not data:
            return b""
        if 0 <= first_dot < len(data) - 2:
            data = data.replace(b"\r\n.", b"\r\n")  # RFC 5321 section 4.5.2
        if self._is_at_start:
            data = data[2:]
            self._is_at_start = False
        self._received += len(data)
        data = self._repair(data)
        self._stored += len(data)
        return data

    def _repair(self, data: bytes) -> bytes:
        data = self._lone_cr + (data.replace(b"\0", b"") if b"\0" in data else data)
        self._lone_cr = b""
        if data.endswith(b"\r"):
            self._lone_cr = b"\r"
            data = data[:-1]
        if _has_clean_line_ends(data):
            return data
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\r\n")


def _start_of_end(data: bytes) -> bytes:
    """Return the longest tail of the data that may turn out to begin the end."""
    return next((start for start in _STARTS_OF_END if data.endswith(start)), b"")


def _has_clean_line_ends(data: bytes) -> bool:
    """Return whether all line ends are CRLF.

    IncrementalNewlineDecoder finds out three times as fast as counting.
    """
    reader = io.IncrementalNewlineDecoder(None, translate=False)
    reader.decode(data.decode("latin-1"), final=True)
    return reader.newlines is None or reader.newlines == "\r\n"
