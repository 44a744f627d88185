"""What a reader returns instead of a text, and how it reads a file inside its file."""

from collections.abc import Callable, Iterator

# Given the type, the name and the bytes of a file inside; gives its text, or nothing. Never raises.
ReadInside = Callable[[str, str, bytes], Iterator[str]]


class Unsupported(Exception):
    """A kind of file without usable text."""


class Encrypted(Exception):
    """A file that needs a password."""
