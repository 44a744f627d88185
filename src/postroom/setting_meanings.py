"""What each setting means, by section: the source of `docs/settings.md` and of the help of `serve`."""

SECTIONS: dict[str, dict[str, str]] = {
    "Addresses and storage": {
        "POSTROOM_SETTINGS": (
            "A file of settings, one `NAME=value` per line, as `postroom setup` writes it. Environment "
            "and flags win."
        ),
        "POSTROOM_DATA_DIR": (
            "Folder for the database, large emails and the certificate. One server at a time uses it."
        ),
        "POSTROOM_DOMAIN": "Domain of the inboxes, and the server's name towards other mail servers.",
        "POSTROOM_BASE_URL": (
            "The URL that clients use and links contain: `https://mail.example.com`. Unset: `http://` and "
            "the HTTP address."
        ),
        "POSTROOM_HTTP": (
            "Address of the API. Port 0 takes a free one. IPv6: `[::1]:8025`. `[::]` takes IPv4 too, in "
            "every setting."
        ),
        "POSTROOM_SMTP": (
            "Address for incoming email. For the internet: `0.0.0.0:25`, or `[::]:25` with IPv6."
        ),
        "POSTROOM_IMAP": (
            "Address for [mail clients](mail-programs.md) that read: `0.0.0.0:993` (TLS; other ports use "
            "STARTTLS). Unset or `off`: none."
        ),
        "POSTROOM_SUBMISSION": (
            "Addresses for [mail clients](mail-client-details.md#sending) that send, separated by commas: "
            "`0.0.0.0:465` (TLS; other ports use STARTTLS). Unset or `off`: none."
        ),
        "POSTROOM_DATABASE_URL": "`postgresql://user:password@host/name`. Unset: SQLite in the data folder.",
        "POSTROOM_BLOB_URL": (
            "Store for emails above 256 kB: "
            "`s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1`. Without "
            "`endpoint`: Amazon S3. Credentials: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or the "
            "machine's role. Unset: `blobs` in the data folder."
        ),
        "POSTROOM_OUTBOUND": (
            "How email is [sent](configuration.md#outgoing-email). Unset: `capture` while the domain is "
            "`postroom.localhost`, else `mx`."
        ),
        "POSTROOM_WORKERS": (
            "Processes that receive and read email, 0 to 64. 0: the server does it. Unset: 1 on a machine "
            "with two or more cores, else 0."
        ),
        "POSTROOM_JOURNAL": (
            "`on`: an email gets its 250 when it is in the [journal](reliability.md#incoming-email). "
            "`off`: when it is stored. Unset: `on` with SQLite, `off` with PostgreSQL."
        ),
    },
    "First account and limits": {
        "POSTROOM_API_KEY": (
            "Key of the first account: `pr_` and at least 16 more visible characters. Unset: a random "
            "one, printed once."
        ),
        "POSTROOM_PLAN": "[Plan](plans.md#plans) of the first account: `free`, `developer` or `business`.",
        "POSTROOM_WEBHOOK_URL": "Webhook of the first account.",
        "POSTROOM_WEBHOOK_SECRET": (
            "Secret of that webhook, 16 to 200 visible characters. Unset: a random one."
        ),
        "POSTROOM_INBOXES_PER_DAY": "Inboxes that an account may create in a day (UTC); 0: no limit.",
        "POSTROOM_REQUESTS_PER_MINUTE": (
            "Requests of an account in a minute, counted by each node; 0: no limit."
        ),
    },
    "TLS and proxies": {
        "POSTROOM_ACME": (
            "`on`: get certificates from Let's Encrypt. A URL: from that ACME directory. "
            "[More](tls.md#certificates)."
        ),
        "POSTROOM_ACME_EMAIL": "Where the authority can reach you.",
        "POSTROOM_ACME_HTTP": (
            "Address that answers the authority and redirects browsers to HTTPS. `off`: the authority "
            "uses port 443."
        ),
        "POSTROOM_DNS": (
            "DNS provider for certificates and [`postroom setup`](mail-host.md): `cloudflare`, `desec`, "
            "`hetzner`, `route53` or `rfc2136://ns1.example.com`."
        ),
        "POSTROOM_DNS_TOKEN": "[Token](tls.md#dns-providers) for that provider.",
        "POSTROOM_TLS_CERT": (
            "File with your certificate and its chain, for HTTPS and STARTTLS. Read again when it changes."
        ),
        "POSTROOM_TLS_KEY": "File with the key of that certificate.",
        "POSTROOM_TRUSTED_PROXIES": (
            "Networks of proxies that may name the client's address, separated by commas: `10.0.0.5, "
            "2001:db8::/32`. [More](tls.md#behind-a-proxy)."
        ),
        "POSTROOM_CORS_ORIGINS": (
            "Sites whose pages may call `/v1` and `/mcp` with a key, separated by commas: "
            "`https://app.example.com`."
        ),
        "POSTROOM_ALLOW_PRIVATE_WEBHOOKS": (
            "`on` or `off`: webhooks, and email by MX, may go to private addresses. Unset: only while the "
            "base URL is loopback."
        ),
    },
    "Sign-in and agents": {
        "POSTROOM_OIDC_ISSUER": (
            "OpenID Connect provider for [single sign-on](people.md#single-sign-on), as it names itself: "
            "`https://login.example.com`."
        ),
        "POSTROOM_OIDC_CLIENT_ID": "This server's client ID at the provider.",
        "POSTROOM_OIDC_CLIENT_SECRET": "Secret of that client. Set all three together.",
        "POSTROOM_OIDC_ROLE": (
            "Role of people whom nobody invited: `owner`, `admin`, `approver` or `viewer`. Unset: they "
            "are refused."
        ),
        "POSTROOM_OAUTH_REGISTRATIONS": (
            "Programs that may register themselves by OAuth, per hour and network (IPv4 address or IPv6 "
            "/64). Approved ones do not count."
        ),
        "POSTROOM_MCP_EVENTS": (
            "`on`: agents subscribe to events by MCP ([MCP Events](mcp.md#mcp-events), a young proposal)."
        ),
    },
    "Logs and operation": {
        "POSTROOM_LOG": "Format of the log: `logfmt` (`key=value`) or `json`.",
        "POSTROOM_OTEL": (
            "OpenTelemetry collector that gets [traces](monitoring.md#traces) by OTLP over HTTP. Needs "
            "two more packages."
        ),
        "POSTROOM_AUDIT_EXPORT": (
            "Daily copies of the [audit log](api/audit.md): a folder or `s3://bucket/prefix`."
        ),
        "POSTROOM_DRAIN_SECONDS": (
            "How long `/ready` answers 503 before the server [stops](operations.md#stop)."
        ),
    },
    "Sending": {
        "POSTROOM_SENDS_PER_MINUTE": "Emails that an inbox may send in any 60 seconds; 0: no limit.",
        "POSTROOM_SENDS_PER_DAY": "Emails that an inbox may send in a day (UTC); 0: no limit.",
        "POSTROOM_COLD_PER_DAY": (
            "Recipients a day who never wrote to the inbox, in its first 30 days; 0: no limit."
        ),
        "POSTROOM_ALLOWED_HEADERS": (
            "Header fields to send although they steer a relay (`X-SMTPAPI`, `X-MC-…`), by name, "
            "separated by commas. They can add recipients past every policy."
        ),
        "POSTROOM_SUSPEND_AFTER": (
            "Emails in seven days from which an inbox can be [suspended](sending.md#suspended-inboxes)."
        ),
        "POSTROOM_SUSPEND_BOUNCES": "Percent of bounces that suspends it; 0: never.",
        "POSTROOM_SUSPEND_COMPLAINTS": "Percent of complaints that suspends it; 0: never.",
        "POSTROOM_PACE_SECONDS": (
            "Seconds between two emails to a provider after its first [421 or "
            "451](sending.md#slowed-delivery-421-451); 0: never slow down."
        ),
        "POSTROOM_PACE_GROWTH": "Percent by which each further one makes that wait longer.",
        "POSTROOM_PACE_LONGEST": "Longest such wait, in seconds.",
        "POSTROOM_PACE_RECOVERY": "Percent by which each accepted email makes it shorter.",
        "POSTROOM_WARM_UP_MAILS": (
            "Emails that a domain in [warm-up](sending.md#warm-up-a-new-domain) sends to a provider on "
            "the first day."
        ),
        "POSTROOM_WARM_UP_GROWTH": "Percent more on each further day with email.",
        "POSTROOM_WARM_UP_DAYS": "Days with email until the warm-up ends.",
    },
    "Encryption and deliverability": {
        "POSTROOM_MTA_STS": (
            "Mode of the [MTA-STS policy](deliverability.md#mta-sts) for your domains: `testing`, "
            "`enforce` or `none`."
        ),
        "POSTROOM_DANE": (
            "`on`: trust the resolver's DNSSEC answers, for [DANE](sending.md#mta-sts-and-dane). "
            "`off`: never. Unset: only if every `nameserver` in `/etc/resolv.conf` is loopback "
            "(127.0.0.11 of container engines is not)."
        ),
        "POSTROOM_TLS_REPORTS": (
            "`on` or `off`: daily [TLS reports](sending.md#tls-reports) to domains that ask for them."
        ),
        "POSTROOM_BLOCK_LISTS": (
            "DNS block lists that the health check asks about this server, separated by commas. Use only "
            "lists that allow your use and your resolver."
        ),
    },
    "Incoming email": {
        "POSTROOM_JUNK": (
            "What happens to [junk](junk.md) if no account, pod or inbox says: `mark`, `folder` or `reject`."
        ),
        "POSTROOM_DMARC": (
            "What happens to email that fails [DMARC](junk.md#dmarc) if its domain asks for `quarantine` "
            "or `reject`: `mark` shows it, `junk` makes it junk, `reject` also refuses it."
        ),
        "POSTROOM_DMARC_REPORTS": "`on` or `off`: daily reports to domains that ask for them (`rua`).",
        "POSTROOM_TRUSTED_SEALERS": (
            "Domains of forwarders whose [ARC seals](deliverability.md#forwarded-email-arc) you "
            "trust, separated by commas."
        ),
        "POSTROOM_GREYLIST": (
            "`on`: [delay](junk.md#greylisting) email from unknown networks that passes neither SPF nor "
            "DKIM for five minutes."
        ),
        "POSTROOM_DNSBL": "DNS lists of servers, with weights (3 if left out): `zen.example=3, bl.example`.",
        "POSTROOM_URIBL": "DNS lists of hosts in links, with weights in the same form.",
        "POSTROOM_RSPAMD_URL": (
            "Your rspamd (its normal worker, by HTTP), as "
            "[another source](junk.md#dns-lists-rspamd-spamassassin) for junk."
        ),
        "POSTROOM_SPAMD": (
            "Your SpamAssassin (spamd), as [another source](junk.md#dns-lists-rspamd-spamassassin) for "
            "junk: `host:port` or `unix:/path`."
        ),
        "POSTROOM_CLAMD": (
            "ClamAV's daemon, to find [malware](security.md#malware): `host:port` or `unix:/path`."
        ),
        "POSTROOM_CLAMD_WAIT": (
            "Seconds that an email waits while clamd is not available, up to 86400. Then it passes unscanned."
        ),
        "POSTROOM_JUDGE_URL": (
            "[Your own judge](security.md#your-own-judge) for received email: a chat endpoint (ends in "
            "`/chat/completions`), or any that takes JSON."
        ),
        "POSTROOM_JUDGE_KEY": "Bearer key for the judge.",
        "POSTROOM_JUDGE_MODEL": "Model of the judge, for a chat endpoint.",
        "POSTROOM_JUDGE_SECONDS": "Seconds that an answer of the judge may take, 1 to 600.",
        "POSTROOM_JUDGE_PER_MINUTE": "Emails that it judges per minute, 1 to 600; the rest is not judged.",
    },
}
MEANINGS = {name: meaning for section in SECTIONS.values() for name, meaning in section.items()}
