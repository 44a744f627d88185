"""What a reader of a format says instead of a text, and how it has a file inside its file read."""

from collections.abc import Callable, Iterator

# Given the type, the name and the bytes of a file inside; gives its text, or nothing. Never raises.
ReadInside = Callable[[str, str, bytes], Iterator[str]]


class Unsupported(Exception):
    """A kind of file that holds no text for us."""


class Encrypted(Exception):
    """A file that opens with a password only."""
