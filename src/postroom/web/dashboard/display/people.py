"""Senders, recipients and sign-in devices, shortened for a row."""

from postroom_mail.mime.address import parse_list


def name_of(field: str) -> str:
    """Return the names, or addresses if there are none."""
    found = parse_list(field[:2000])
    return ", ".join(each.name or each.address for each in found[:3]) or field[:100] or "nobody"


# By a word that this browser sends and those before it do not: each names the ones it imitates.
_BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS X": "Mac",
    "CrOS": "Chromebook",
    "Linux": "Linux",
}


def device_of(user_agent: str) -> str:
    """Return the browser and system in common names; for a mail client its own user agent."""
    browser = next((name for word, name in _BROWSERS.items() if word in user_agent), "")
    system = next((name for word, name in _SYSTEMS.items() if word in user_agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or user_agent[:100] or "A browser"
