"""How this Python was built. Run as a program, it exits with 0 if the server should run on it.

An interpreter built without optimisation needs 15 to 50 % longer for everything.
"""

import importlib.util
import sys
import sysconfig

OPTIMIZED, PACKAGED, PLAIN = "optimized", "packaged", "plain"
NEEDED = ("sqlite3", "ssl", "ctypes", "bz2", "lzma")  # modules that some installations leave out


def build() -> str:
    """Return OPTIMIZED, PLAIN or PACKAGED: Debian optimizes in a way that its interpreter does not name."""
    if "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        return OPTIMIZED
    return PACKAGED if sys.base_prefix == "/usr" else PLAIN


def is_preferred() -> bool:
    has_all = all(map(importlib.util.find_spec, NEEDED))
    return sys.version_info >= (3, 11) and has_all and build() != PLAIN


if __name__ == "__main__":
    sys.exit(not is_preferred())
