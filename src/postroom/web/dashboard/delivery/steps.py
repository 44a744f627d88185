"""Steps that a person takes at each service, before or after filling in the form here."""

NAMES = {
    "gmail": "Gmail",
    "fastmail": "Fastmail",
    "icloud": "iCloud",
    "microsoft": "Microsoft 365",
    "imap": "Other IMAP",
    "mailgun": "Mailgun",
    "sendgrid": "SendGrid",
    "postmark": "Postmark",
    "ses": "Amazon SES",
    "cloudflare": "Cloudflare",
    "resend": "Resend",
    "raw": "Raw HTTP",
}
# For OAuth; the redirect address to register follows it.
REGISTERED_AT = {
    "gmail": (
        "At https://console.cloud.google.com enable the Gmail API, set up the consent screen with the scope"
        " https://mail.google.com/, and create an OAuth client of the type Web application."
    ),
    "microsoft": (
        "At https://entra.microsoft.com register an app; under API permissions add IMAP.AccessAsUser.All,"
        " SMTP.Send and offline_access; under Certificates & secrets create a client secret."
    ),
}
BEFORE = {
    "gmail": (
        "Turn 2-Step Verification on at https://myaccount.google.com/security.",
        "Create an app password at https://myaccount.google.com/apppasswords and copy its 16 letters.",
    ),
    "fastmail": (
        "Settings, Privacy & Security, Manage app passwords: create one with access to Mail (IMAP and SMTP).",
    ),
    "icloud": ("At https://account.apple.com, Sign-In and Security: create an app-specific password.",),
    "microsoft": (
        "Microsoft 365 does not accept passwords. Connect with OAuth below.",
        "An administrator may have to turn on IMAP and authenticated SMTP for the mailbox.",
    ),
    "imap": ("You need the host names of the IMAP and SMTP servers. Both need a valid certificate.",),
    "mailgun": ("Add the domain there, and copy the HTTP webhook signing key (Settings, API security).",),
    "sendgrid": ("Authenticate the domain there. A signature needs a security policy of Inbound Parse.",),
    "postmark": ("Create a server there, with an inbound stream; choose a password for the signing key.",),
    "ses": ("Verify the domain in a region that receives mail. No signing key is needed: SNS signs.",),
    "cloudflare": ("Turn Email Routing on for the domain; choose a secret for the signing key.",),
    "resend": ("Add the domain there with receiving on, and create an API key with full access.",),
    "raw": ("Choose a secret as the signing key, or leave it empty: the URL is secret too.",),
}
AFTER = {
    "mailgun": (
        "Receiving, Create route: forward to the URL with /mime at its end.",
        "The same URL under Webhooks, for Permanent failure and Spam complaints.",
    ),
    "sendgrid": (
        "Settings, Inbound Parse, Add Host & URL; tick POST the raw, full MIME message.",
        "The same URL under Mail Settings, Event Webhook: Bounced, Dropped, Spam reports.",
    ),
    "postmark": (
        "The inbound stream's Settings, Webhook; tick Include raw email content in JSON payload.",
        "The same URL at the outbound stream, for bounces and spam complaints.",
    ),
    "ses": (
        "Create an SNS topic with an HTTPS subscription to the URL; it is confirmed automatically.",
        "Create a receipt rule with an SNS action on that topic, encoding Base64.",
    ),
    "cloudflare": (
        "Create an Email Worker from deploy/cloudflare-email-worker.js with the URL and the secret.",
    ),
    "resend": ("Webhooks, Add the URL: email.received, email.bounced, email.complained.",),
    "raw": ("POST each email to the URL, with ?to= or X-Envelope-To.",),
}
