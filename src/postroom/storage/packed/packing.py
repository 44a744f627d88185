"""Bytes kept small: compressed by Zstandard (RFC 8878), short ones with words that most of them share."""

import sys
from importlib.resources import files

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"\x28\xb5\x2f\xfd"  # how what is packed begins
LEVEL = 1
WORTH_PACKING_BYTES = 256
# In longer ones words repeat themselves, and to look for those of others takes half as long again.
SHARING_WORDS_BYTES = 16 * 1024

# What was packed with these words is read with them: the file must never change.
WORDS = files("postroom.storage.packed").joinpath("packing_words.txt").read_bytes()

_words = zstd.ZstdDict(WORDS, is_raw=True)
_short = zstd.ZstdCompressor(level=LEVEL, zstd_dict=_words.as_digested_dict)
_long = zstd.ZstdCompressor(level=LEVEL)


class NotPacked(ValueError):
    """These bytes were not packed, or are damaged."""


def pack(plain: bytes) -> bytes | None:
    """None: packed they would hardly be shorter."""
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
    """Packed or not: JSON never begins as what is packed does."""
    return unpack(stored) if stored.startswith(MAGIC) else stored
