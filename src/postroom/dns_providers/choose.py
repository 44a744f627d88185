"""Opens the DNS provider that `POSTROOM_DNS` names."""

from collections.abc import Callable
from urllib.parse import urlsplit

from postroom.dns_providers.cloudflare import Cloudflare
from postroom.dns_providers.desec import Desec
from postroom.dns_providers.dynamic_updates import DynamicUpdates
from postroom.dns_providers.hetzner import Hetzner
from postroom.dns_providers.route53 import Route53
from postroom.dns_providers.zone import DnsProvider
from postroom.external_mailboxes.fetching import Fetcher
from postroom.net.dns import Resolver

DNS_PORT = 53
OF_WEB: dict[str, Callable[[Fetcher, str], DnsProvider]] = {
    "cloudflare": Cloudflare,
    "desec": Desec,
    "hetzner": Hetzner,
    "route53": Route53,
}


def open_provider(setting: str, token: str, fetcher: Fetcher, resolver: Resolver) -> DnsProvider:
    """Raises DnsProviderError if the key of a server for updates cannot be read."""
    if setting in OF_WEB:
        return OF_WEB[setting](fetcher, token)
    server = urlsplit(setting)
    return DynamicUpdates(resolver, server.hostname or "", server.port or DNS_PORT, token)
