"""One key that signs mail, for every test of a run: making one takes longer than most tests."""

import functools
import os

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from postroom_mail.authentication import dkim

KEY = "POSTROOM_TEST_SIGNING_KEY"
new_key = dkim.generate_key


@functools.cache
def signing_key() -> bytes:
    """Whatever a process starts after it has the key inherits it."""
    if KEY not in os.environ:
        os.environ[KEY] = new_key().decode()
    return os.environ[KEY].encode()


def give_every_domain_this_key() -> None:
    """Of servers in this process."""
    dkim.generate_key = signing_key


@functools.cache
def private_key() -> RSAPrivateKey:
    key = dkim.load_key(signing_key())
    assert isinstance(key, RSAPrivateKey)
    return key
