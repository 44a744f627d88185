"""The certificate authorities of this machine, read once and only when a connection needs them."""

import functools
import ssl


@functools.cache
def machine_authorities() -> ssl.SSLContext:
    return ssl.create_default_context()
