"""The mail services known by name, and the steps to take there."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mailbox:
    host: str
    smtp_host: str
    smtp_port: int
    password: str  # which one it takes, and where it is made
    token_url: str = ""  # where OAuth tokens are requested
    takes_passwords: bool = True


MAILBOXES = {
    "gmail": Mailbox(
        "imap.gmail.com",
        "smtp.gmail.com",
        465,
        "An app password (2-Step Verification must be on): https://myaccount.google.com/apppasswords",
        "https://oauth2.googleapis.com/token",
    ),
    "fastmail": Mailbox(
        "imap.fastmail.com",
        "smtp.fastmail.com",
        465,
        "An app password: Settings, Privacy & Security, Manage app passwords.",
    ),
    "icloud": Mailbox(
        "imap.mail.me.com",
        "smtp.mail.me.com",
        587,
        "An app-specific password, created at https://account.apple.com.",
    ),
    "microsoft": Mailbox(
        "outlook.office365.com",
        "smtp.office365.com",
        587,
        "OAuth, not a password: an app registered at https://entra.microsoft.com with IMAP.AccessAsUser.All,"
        " SMTP.Send and offline_access, and a refresh token for it.",
        "https://login.microsoftonline.com/common/oauth2/v2.0/token",
        takes_passwords=False,
    ),
}
OWN_MAILBOX = "imap"

# Where the URL goes at each service that posts mail.
SERVICES = {
    "mailgun": "Receiving, Create route, Forward to the URL; and under Webhooks for Permanent failure.",
    "sendgrid": "Settings, Inbound Parse, Add Host & URL; tick 'POST the raw, full MIME message'.",
    "postmark": "The inbound stream's Settings, Webhook; tick 'Include raw email content'.",
    "ses": "An SNS topic with an HTTPS subscription to the URL, and a receipt rule that publishes to it.",
    "cloudflare": "deploy/cloudflare-email-worker.js as an Email Worker, with the URL in it.",
    "resend": "Webhooks, Add: email.received, email.bounced, email.complained.",
    "raw": "Your own program: POST each email to the URL, with ?to= or X-Envelope-To.",
}
NAMES = (*MAILBOXES, OWN_MAILBOX, *SERVICES)
