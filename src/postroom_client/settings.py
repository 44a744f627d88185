"""Which server, key and inbox a command uses: flag over environment over profile."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from postroom_client import profiles
from postroom_client.errors import ConnectionFailed, Unauthorized
from postroom_client.profiles import InvalidProfile, Profile

DEFAULT_BASE_URL = "http://127.0.0.1:8025"


@dataclass(frozen=True, slots=True)
class Flags:
    profile: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    profile: str
    base_url: str
    api_key: str | None = field(repr=False)
    inbox_id: str | None


def resolve(flags: Flags, environment: Mapping[str, str]) -> Settings:
    known = profiles.load()
    asked = flags.profile or environment.get("POSTROOM_PROFILE")
    name = asked or known.current
    profile = known.find(name)
    if profile is None and asked:
        raise InvalidProfile(f"There is no profile '{name}'. Create it: postroom login --profile {name}")
    base_url = usable(flags.base_url or environment.get("POSTROOM_BASE_URL") or _base_url(profile))
    stored = profile if profile is not None and _is_same_server(profile.base_url, base_url) else None
    return Settings(
        profile=name,
        base_url=base_url,
        api_key=flags.api_key or environment.get("POSTROOM_API_KEY") or (stored.api_key if stored else None),
        inbox_id=environment.get("POSTROOM_INBOX_ID") or (stored.inbox_id if stored else None),
    )


def require_key(api_key: str | None) -> str:
    if not api_key:
        raise Unauthorized("There is no API key. Pass api_key, or set POSTROOM_API_KEY.")
    return api_key


def usable(url: str) -> str:
    try:
        is_wrong = urlsplit(url).port == 0 or not url.isprintable()
    except ValueError:
        is_wrong = True
    if is_wrong:
        raise ConnectionFailed(f"{url!r} is not the URL of a server. Use one like https://mail.example.com.")
    return url.rstrip("/")


def _base_url(profile: Profile | None) -> str:
    return DEFAULT_BASE_URL if profile is None else profile.base_url


def _is_same_server(left: str, right: str) -> bool:
    """Return whether a stored key may go to a server: only to the one that it was stored for."""
    return _origin(left) == _origin(right)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()
