"""What setup asks: at most five questions, and none that options or earlier settings have answered."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from postroom.config import DNS_PROVIDERS
from postroom.host_setup.settings_file import Host
from postroom.host_setup.systemd import SetupFailed

SHOW = "show"  # the answer that sets no records
Ask = Callable[[str, str, bool], str]  # a question, its default, and whether the answer is a secret
RELAYS = (
    "Port 25 is closed for outgoing email. Ask your network to open it, or send through a relay:"
    " smtp://USER:PASSWORD@HOST:587, or a service by name (docs/real-mail.md lists them)."
    " Email can come in by the same services, as posts to this server, if port 25 is closed there too."
)


class SetupOptions(Struct, frozen=True):
    """Options of the command; "" was not given."""

    host: str
    owner: str
    acme: str
    dns: str
    dns_token: str
    relay: str
    asks: bool

    def explicit(self) -> dict[str, str]:
        """Return the settings that these options change."""
        named = {
            "POSTROOM_ACME_EMAIL": self.owner,
            "POSTROOM_ACME": self.acme,
            "POSTROOM_DNS": "" if self.dns == SHOW else self.dns,
            "POSTROOM_DNS_TOKEN": self.dns_token,
            "POSTROOM_OUTBOUND": self.relay,
        }
        return {name: value for name, value in named.items() if value}


def ask_all(options: SetupOptions, there: Mapping[str, str], ask: Ask, data_dir: str) -> Host:
    """Return the host as options, settings and answers describe it. The fifth question is `ask_relay`."""
    owner = options.owner or there.get("POSTROOM_ACME_EMAIL", "")
    if not owner:
        owner = ask("Your email address, on another server (it becomes the owner)", "", False)
    require_owner(owner, options.host)
    is_new = "POSTROOM_DOMAIN" not in there
    acme = options.acme or there.get("POSTROOM_ACME", "")
    if not acme:
        question = "Get free certificates from Let's Encrypt, and accept its terms of service? (yes/no)"
        answer = ask(question, "yes", False)
        acme = "off" if answer.lower().startswith("n") else "on"
    dns = options.dns or there.get("POSTROOM_DNS", "")
    if not dns and is_new:
        known = ", ".join(DNS_PROVIDERS)
        dns = ask(f"Who sets the DNS records: {known}, rfc2136://SERVER, or show (you do)", SHOW, False)
    dns = "" if dns == SHOW else dns
    token = options.dns_token or there.get("POSTROOM_DNS_TOKEN", "")
    if dns and not token:
        token = ask(f"Token or key for {dns}", "", True)
    relay = options.relay or there.get("POSTROOM_OUTBOUND", "")
    return Host(options.host, owner, data_dir, acme, dns, token, relay)


def ask_relay(ask: Ask) -> str:
    """Return the relay; "" for none."""
    return ask(f"{RELAYS}\nRelay (empty: none yet)", "", True)


def require_owner(owner: str, host: str) -> None:
    """Require an owner's address that does not depend on the server that is set up."""
    name, at, domain = owner.rpartition("@")
    if not name or not at or "." not in domain or not owner.isprintable():
        raise SetupFailed(f"The owner's address is not an email address: '{owner}'. Give one with --owner.")
    if domain.lower() == host:
        raise SetupFailed(
            f"{owner} is an address of this server. Give one elsewhere: it gets the first email."
        )
