"""The name of a provider: the registered domain of its mail server."""

from ipaddress import ip_address

# Below these a country registers names, as in mx.example.co.uk; elsewhere directly below the top.
REGISTRIES = frozenset(("ac", "co", "com", "edu", "gov", "govt", "gob", "go", "gv", "ne", "net", "or", "org"))


def provider_of(host: str) -> str:
    """Return the provider: google.com for `aspmx.l.google.com`. An IP address is itself."""
    name = host.lower().rstrip(".")
    labels = name.split(".")
    if _is_address(name) or len(labels) <= 2:
        return name
    is_below_registry = len(labels[-1]) == 2 and labels[-2] in REGISTRIES
    return ".".join(labels[-3:] if is_below_registry else labels[-2:])


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
