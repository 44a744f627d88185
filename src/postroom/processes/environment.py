"""What of our environment a child gets: no key and no secret is among it."""

import os

PASSED_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TESSDATA_PREFIX")


def for_child() -> dict[str, str]:
    return {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
