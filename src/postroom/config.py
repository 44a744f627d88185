"""One frozen Config, read from the environment; a wrong value is a ConfigError that names its setting."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

Plan = Literal["free", "developer", "business"]
PLANS: tuple[Plan, ...] = get_args(Plan)

DEFAULTS = {
    "POSTROOM_DATA_DIR": "./data",
    "POSTROOM_HTTP": "127.0.0.1:8025",
    "POSTROOM_SMTP": "127.0.0.1:2525",
    "POSTROOM_BASE_URL": "",
    "POSTROOM_DOMAIN": "postroom.localhost",
    "POSTROOM_DATABASE_URL": "",
    "POSTROOM_OUTBOUND": "mx",
    "POSTROOM_API_KEY": "",
    "POSTROOM_PLAN": "free",
    "POSTROOM_WEBHOOK_URL": "",
    "POSTROOM_WEBHOOK_SECRET": "",
    "POSTROOM_ALLOW_PRIVATE_WEBHOOKS": "",
}

SWITCH: dict[str, bool | None] = {
    "": None,
    **dict.fromkeys(("on", "true", "1", "yes"), True),
    **dict.fromkeys(("off", "false", "0", "no"), False),
}

_HOST_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_DOMAIN = re.compile(rf"{_HOST_LABEL}(\.{_HOST_LABEL})*")
_SECRET = re.compile(r"[\x21-\x7e]{16,200}")
_API_KEY = re.compile(r"pr_[\x21-\x7e]{16,200}")
_ENDPOINT = re.compile(r"(\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[A-Za-z0-9._:-]+)):(?P<port>[0-9]{1,5})")
_BASE_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?")


class ConfigError(Exception):
    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {reason}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Config:
    data_dir: Path
    http: Endpoint
    smtp: Endpoint
    base_url: str  # "" until the HTTP port is known
    domain: str
    database_url: str  # "" is SQLite in the data folder
    api_key: str  # "" makes a random one
    plan: Plan
    outbound: str
    webhook_url: str  # "" sets none
    webhook_secret: str  # "" makes a random one
    allow_private: bool | None  # None: only while base_url is loopback

    def __repr__(self) -> str:
        return f"Config(data_dir={self.data_dir}, http={self.http}, smtp={self.smtp})"  # no key, no password


def allows_private_targets(config: Config) -> bool:
    """Whether webhooks and mail may go to private addresses: by default on a laptop only."""
    if config.allow_private is not None:
        return config.allow_private
    host = urlsplit(config.base_url).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def load(environment: Mapping[str, str]) -> Config:
    values = DEFAULTS | {name: value for name, value in environment.items() if value and name in DEFAULTS}
    return Config(
        data_dir=_folder("POSTROOM_DATA_DIR", values),
        http=_endpoint("POSTROOM_HTTP", values),
        smtp=_endpoint("POSTROOM_SMTP", values),
        base_url=_base_url(values["POSTROOM_BASE_URL"]),
        domain=_domain(values["POSTROOM_DOMAIN"]),
        database_url=_database_url(values["POSTROOM_DATABASE_URL"]),
        api_key=_api_key(values["POSTROOM_API_KEY"]),
        plan=_plan(values["POSTROOM_PLAN"]),
        outbound=values["POSTROOM_OUTBOUND"],
        webhook_url=values["POSTROOM_WEBHOOK_URL"],
        webhook_secret=_webhook_secret(values["POSTROOM_WEBHOOK_SECRET"]),
        allow_private=_switch("POSTROOM_ALLOW_PRIVATE_WEBHOOKS", values),
    )


def _folder(setting: str, values: Mapping[str, str]) -> Path:
    try:
        return Path(values[setting]).expanduser()
    except RuntimeError as error:
        raise ConfigError(setting, f"'{values[setting]}' names no home folder: {error}") from error


def _endpoint(setting: str, values: Mapping[str, str]) -> Endpoint:
    found = _ENDPOINT.fullmatch(values[setting])
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(setting, f"must be host:port, such as {DEFAULTS[setting]}, not '{values[setting]}'")
    return Endpoint(found["ipv6"] or found["host"], int(found["port"]))


def _base_url(value: str) -> str:
    if not value:
        return ""
    try:
        is_valid = _BASE_URL.fullmatch(value) is not None and urlsplit(value).port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ConfigError("POSTROOM_BASE_URL", f"must be like https://mail.example.com, not '{value}'")
    return value.rstrip("/")


def _domain(value: str) -> str:
    domain = value.lower().rstrip(".")
    if len(domain) > 253 or not _DOMAIN.fullmatch(domain):
        raise ConfigError("POSTROOM_DOMAIN", f"must be a domain such as mail.example.com, not '{value}'")
    return domain


def _database_url(value: str) -> str:
    if value and not value.startswith(("postgresql://", "postgres://")):
        raise ConfigError("POSTROOM_DATABASE_URL", "must start with postgresql://, or be unset for SQLite")
    return value


def _api_key(value: str) -> str:
    if value and not _API_KEY.fullmatch(value):
        raise ConfigError("POSTROOM_API_KEY", "must be pr_ and at least 16 more visible characters")
    return value


def _webhook_secret(value: str) -> str:
    if value and not _SECRET.fullmatch(value):
        raise ConfigError("POSTROOM_WEBHOOK_SECRET", "must be 16 to 200 visible characters")
    return value


def _switch(setting: str, values: Mapping[str, str]) -> bool | None:
    value = values[setting].lower()
    if value not in SWITCH:
        raise ConfigError(setting, f"must be on or off, not '{values[setting]}'")
    return SWITCH[value]


def _plan(value: str) -> Plan:
    for plan in PLANS:
        if value == plan:
            return plan
    raise ConfigError("POSTROOM_PLAN", f"must be one of {', '.join(PLANS)}, not '{value}'")
