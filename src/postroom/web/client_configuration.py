"""How mail clients find the server: its ports, autoconfiguration and SRV records (RFC 6186 and 8314)."""

from html import escape

from msgspec import Struct

from postroom.config import Config
from postroom.deliverability.findings import zone_line

IMAPS_PORT, SUBMISSIONS_PORT = 993, 465
AUTOCONFIG = """<?xml version="1.0" encoding="UTF-8"?>
<clientConfig version="1.1">
  <emailProvider id="{host}">
    <domain>{host}</domain>
    <displayName>Postroom</displayName>
    <displayShortName>Postroom</displayShortName>
{servers}  </emailProvider>
</clientConfig>
"""
SERVER = """    <{kind}Server type="{protocol}">
      <hostname>{host}</hostname>
      <port>{port}</port>
      <socketType>{security}</socketType>
      <authentication>password-cleartext</authentication>
      <username>%EMAILADDRESS%</username>
    </{kind}Server>
"""


class MailEndpoint(Struct, frozen=True):
    """One of the two servers for mail clients; `security` as autoconfiguration names it."""

    protocol: str  # imap or smtp
    host: str
    port: int
    security: str  # SSL or STARTTLS

    @property
    def service(self) -> str:
        """Its name in DNS."""
        plain = {"imap": "imap", "smtp": "submission"}[self.protocol]
        return f"_{plain}s._tcp" if self.security == "SSL" else f"_{plain}._tcp"


def endpoints(config: Config) -> list[MailEndpoint]:
    """Return those that are enabled, IMAP first."""
    found = []
    if config.imap is not None:
        found.append(_endpoint("imap", config.domain, config.imap.port, IMAPS_PORT))
    for endpoint in config.submission:
        found.append(_endpoint("smtp", config.domain, endpoint.port, SUBMISSIONS_PORT))
    return found


def _endpoint(protocol: str, host: str, port: int, tls_port: int) -> MailEndpoint:
    return MailEndpoint(protocol, host, port, "SSL" if port == tls_port else "STARTTLS")


def autoconfig(config: Config) -> str:
    """Return the configuration in the format of Thunderbird and others."""
    kinds = {"imap": "incoming", "smtp": "outgoing"}
    servers = [
        SERVER.format(
            kind=kinds[endpoint.protocol],
            protocol=endpoint.protocol,
            host=escape(endpoint.host),
            port=endpoint.port,
            security=endpoint.security,
        )
        for endpoint in endpoints(config)
    ]
    return AUTOCONFIG.format(host=escape(config.domain), servers="".join(servers))


def zone_lines(name: str, config: Config) -> list[str]:
    return [
        zone_line(f"{endpoint.service}.{name}", "SRV", f"0 1 {endpoint.port} {endpoint.host}.")
        for endpoint in endpoints(config)
    ]
