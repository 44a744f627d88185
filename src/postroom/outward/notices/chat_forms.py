"""A notification in the form of each service. What strangers wrote has no markup, mention or hidden link."""

import re

import msgspec

from postroom.events.notifications import DISCORD, NTFY, SLACK, TEAMS

SLACK_CHARACTERS = 12_000
TEAMS_BYTES = 20_000  # of a message, which may have 28 kB with its card
DISCORD_CHARACTERS, DISCORD_EMBED_CHARACTERS = 1_900, 3_900
NTFY_BYTES = 3_900  # more becomes a file there
JSON = {"Content-Type": "application/json", "User-Agent": "Postroom"}
MARKS = re.compile(r"([\\*_~`|>\[\]()#<])")

Written = tuple[bytes, dict[str, str]]


def write(kind: str, headline: str, subject: str, email: str, link: str) -> Written:
    """Return body and headers for a service. `email` is the whole email, or empty."""
    make = {SLACK: slack, TEAMS: teams, DISCORD: discord, NTFY: ntfy}[kind]
    return make(headline, subject, email, link)


def line_of(headline: str, subject: str) -> str:
    return f"{headline}: {subject}" if subject else headline


def sign_in_line(email: str, link: str) -> str:
    return f"To decide, sign in: {link}" if email else link


def slack(headline: str, subject: str, email: str, link: str) -> Written:
    """Return a Slack message. `mrkdwn` off, and no angle brackets: `<!channel>` is shown as it is."""
    parts = [line_of(headline, subject), cut(email, SLACK_CHARACTERS), sign_in_line(email, link)]
    text = "\n\n".join(filter(None, parts)) if email else "\n".join(filter(None, parts))
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return msgspec.json.encode(
        {"text": f"{plain}\n", "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}
    ), JSON


def teams(headline: str, subject: str, email: str, link: str) -> Written:
    """Return an Adaptive Card. Unlike a `TextBlock`, a `TextRun` has no markup."""

    def block(text: str, **look: object) -> dict[str, object]:
        return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **look}]}

    body = [block(line_of(headline, subject), weight="Bolder")]
    body += [block(cut_bytes(email, TEAMS_BYTES), fontType="Monospace")] if email else []
    title = "Sign in to decide" if email else "Open"
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": title, "url": link}],
    }
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return msgspec.json.encode({"type": "message", "attachments": [attached]}), JSON


def discord(headline: str, subject: str, email: str, link: str) -> Written:
    """Return a Discord message: the subject escaped, the email in a code block that nothing in it can end."""
    about = MARKS.sub(r"\\\1", line_of(headline, subject))[:DISCORD_CHARACTERS]
    quiet = {"content": f"{about}\n{sign_in_line(email, link)}\n", "allowed_mentions": {"parse": []}}
    if not email:
        return msgspec.json.encode(quiet), JSON
    block = cut(email.replace("`", "\N{MODIFIER LETTER GRAVE ACCENT}"), DISCORD_EMBED_CHARACTERS)
    return msgspec.json.encode({**quiet, "embeds": [{"description": f"```\n{block}\n```"}]}), JSON


def ntfy(headline: str, subject: str, email: str, link: str) -> Written:
    whole = cut_bytes(email, NTFY_BYTES - len(link) - 50)
    parts = [line_of(headline, subject), whole, sign_in_line(email, link)]
    body = ("\n\n" if email else "\n").join(filter(None, parts))
    return f"{body}\n".encode(), {"Title": headline, "Click": link, "User-Agent": "Postroom"}


def cut(text: str, most: int) -> str:
    rest = len(text) - most
    return text if rest <= 0 else f"{text[:most]}\n[{rest:,} more characters: open the link]"


def cut_bytes(text: str, most: int) -> str:
    """Cut a text to this length in UTF-8."""
    kept = text.encode()[:most].decode(errors="ignore")
    return kept if kept == text else f"{kept}\n[{len(text) - len(kept):,} more characters: open the link]"
