"""One key that signs mail, for every test of a process: making one takes longer than most tests."""

import functools

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from postroom.mail.proof import dkim


@functools.cache
def signing_key() -> bytes:
    return dkim.generate_key()


@functools.cache
def private_key() -> RSAPrivateKey:
    return dkim.load_key(signing_key())
