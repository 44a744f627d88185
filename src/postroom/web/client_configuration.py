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


class ProgramDoor(Struct, frozen=True):
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


def doors(config: Config) -> list[ProgramDoor]:
    """Those that are enabled, IMAP first."""
    found = []
    if config.imap is not None:
        found.append(_door("imap", config.domain, config.imap.port, IMAPS_PORT))
    for endpoint in config.submission:
        found.append(_door("smtp", config.domain, endpoint.port, SUBMISSIONS_PORT))
    return found


def _door(protocol: str, host: str, port: int, tls_port: int) -> ProgramDoor:
    return ProgramDoor(protocol, host, port, "SSL" if port == tls_port else "STARTTLS")


def autoconfig(config: Config) -> str:
    """The format of Thunderbird and others."""
    kinds = {"imap": "incoming", "smtp": "outgoing"}
    servers = [
        SERVER.format(
            kind=kinds[door.protocol],
            protocol=door.protocol,
            host=escape(door.host),
            port=door.port,
            security=door.security,
        )
        for door in doors(config)
    ]
    return AUTOCONFIG.format(host=escape(config.domain), servers="".join(servers))


def zone_lines(name: str, config: Config) -> list[str]:
    return [
        zone_line(f"{door.service}.{name}", "SRV", f"0 1 {door.port} {door.host}.") for door in doors(config)
    ]
