"""Compression by Zstandard (RFC 8878), for short texts with a dictionary of common words."""

import sys
from importlib.resources import files

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"\x28\xb5\x2f\xfd"  # how compressed bytes begin
LEVEL = 1
WORTH_PACKING_BYTES = 256
# In longer texts words repeat, and using the dictionary takes half as long again.
SHARING_WORDS_BYTES = 16 * 1024

# What was compressed with this dictionary needs it to be read: the file must never change.
WORDS = files("postroom.storage").joinpath("packing_words.txt").read_bytes()

_words = zstd.ZstdDict(WORDS, is_raw=True)
_short = zstd.ZstdCompressor(level=LEVEL, zstd_dict=_words.as_digested_dict)
_long = zstd.ZstdCompressor(level=LEVEL)


class NotPacked(ValueError):
    """These bytes were not compressed, or are damaged."""


def pack(plain: bytes) -> bytes | None:
    """Return None if compression would hardly save anything."""
    if len(plain) < WORTH_PACKING_BYTES:
        return None
    compressor = _short if len(plain) <= SHARING_WORDS_BYTES else _long
    packed = compressor.compress(plain, compressor.FLUSH_FRAME)
    return packed if len(packed) < len(plain) * 7 // 8 else None


def unpack(packed: bytes) -> bytes:
    try:
        return zstd.decompress(packed, _words)
    except zstd.ZstdError as error:
        raise NotPacked(str(error)) from error


def unpack_json(stored: bytes) -> bytes:
    """Return the JSON, compressed or not: JSON never begins like compressed bytes."""
    return unpack(stored) if stored.startswith(MAGIC) else stored
