"""Makes `docs/log-lines.md`: every line of the log with its meaning; the source says which there are."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.generate.description import Description

SOURCE = Path(__file__).parents[2] / "src" / "postroom"
LEVELS = {"info", "error", "seldom", "exception"}
BUG = "A bug, with a traceback: please report it."
ASIDE = "[set aside](reliability.md#incoming-email)"
DISK = "Check the disk."
SYMPTOM = "see [incidents](incidents.md#symptoms)"

MEANINGS = {
    "Incoming email": {
        "mail received": "An email was stored: `id`, `peer`, `size`, `inboxes`.",
        "mail refused": "As junk or by DMARC, before its 250: `reason`.",
        "mail was put off": "The database did not answer, a row was locked for long, or a worker was "
        "replaced. "
        "The sender got 451 and tries again.",
        "no space left for mail": "The disk, the quota or the store of large emails is full. The sender "
        "got 452 "
        "and tries again.",
        "recipient look-up failed": "With the reason. The sender got 451.",
        "a client guesses addresses and is put off": "[Too many unknown recipients]"
        "(junk.md#address-guessing) from its network.",
        "SMTP connection limit reached": "The connection that was idle longest is closed.",
        "a connection was not admitted": "The worker could not ask the server, which is stopping.",
        "a connection failed and was closed": BUG,
        "a proxy sent no PROXY header": "It is in `POSTROOM_TRUSTED_PROXIES`: [TLS](tls.md#behind-a-proxy).",
        "a connection could not be accepted": "With the reason. It is tried again.",
        "an email was not stored": BUG + " The sender got 451 and tries again.",
        "an email could not be spooled": BUG + " The sender got 452 and tries again.",
        "whether an email is refused was not found out in time; it is accepted": "It is examined afterwards.",
        "whether an email is refused could not be found out; it is accepted": BUG,
        "an email of this server was kept out of an inbox": "It was for a person: agents read in inboxes.",
        "a sign-in link came into an inbox and was ended": "Somebody forwarded an email of the server.",
        "a review link came into an inbox and was ended": "Somebody forwarded an email of the server.",
    },
    "Reading and examining": {
        "an email could not be analyzed: …": "A bug in the reader named: the email was delivered with "
        '`analysis: "failed"`.',
        "a message could not be examined": BUG,
        "an examination could not be stored": BUG,
        "clamd does not answer": "Emails wait up to `POSTROOM_CLAMD_WAIT` seconds, then pass unscanned.",
        "… gave no answer": "rspamd or SpamAssassin: the score goes without it.",
        "a DNS list names 127.0.0.1 and is left out: it answers for everything": "Remove it there.",
        "weights of the junk filter cannot be read; they are learned anew": DISK,
        "the judge gave no answer": "The email keeps its verdict. After five failures the judge rests a "
        "minute.",
        "too many reports about a domain in a day": "The report is not stored.",
        "a report about a domain could not be read": BUG,
    },
    "The journal": {
        "an email could not be stored and was set aside": f"With the reason. It is whole, and {ASIDE}.",
        "emails that were set aside are tried again": "At the start; any that fail are set aside again.",
        "an email of the journal cannot be read": "A bug, or a disk that fails. The email is delivered "
        "unread.",
        "the journal cannot be read": "A bug, or a disk that fails.",
        "a journal no longer in use was stored": "There were more workers before, or the journal was "
        "switched off.",
        "a torn end of a journal was cut off": "A crash interrupted the last write. Nobody got a 250 for it.",
        "a journal is damaged: whole emails around it are stored": "Emails in the named file are lost. "
        + DISK,
        "a journal is damaged": "The same in the journal of delivery outcomes, or a crash tore its last "
        "record.",
    },
    "Outgoing email and webhooks": {
        "mail delivered": "A recipient's server accepted an email.",
        "mail not delivered": "An attempt failed, with the reason. It is tried again unless the refusal is "
        "final.",
        "an email was put off": "The database did not answer; it is tried again.",
        "an email could not be handed over": BUG,
        "an event could not be posted": BUG,
        "a relay does not answer, trying the next one": "With the reason.",
        "an MTA-STS policy could not be fetched": "The domain counts as without one, or as before.",
        "an outcome cannot be kept": "The data folder refused it: this delivery may go twice.",
        "an outcome of an earlier run was recorded": "What the other side answered before a stop or crash.",
        "an outcome of an earlier run cannot be read": "This delivery may go twice.",
        "an outcome of an earlier run cannot be recorded": "This delivery may go twice.",
        "a DMARC report was tried": "With the result.",
        "a TLS report was tried": "With the result.",
        "an answer of a reviewer does not count": "It is not from the reviewer, or does not begin with a "
        "decision.",
        "a reviewer decided too late": "Somebody else had decided, or the hold had ended.",
    },
    "Mailboxes elsewhere": {
        "a mailbox cannot be read": "With the reason. It is tried again.",
        "following a mailbox failed": BUG,
        "an email was left": "It is too large, or was gone when it was fetched.",
        "an email loops": "It passed too many servers, and was left.",
        "an email of this server was left": "It was for a person: agents read in inboxes.",
        "no copy in the Sent folder": "The email was sent; the mailbox refused the copy.",
    },
    "Mail clients, API and pages": {
        "an IMAP command failed": BUG,
        "the connection of a mail client failed and was closed": BUG,
        "a submission failed": BUG,
        "unexpected error": BUG + " The answer is 500, with the same `request_id`.",
        "request failed": "An answer of 500 or more: `reason`, and the `request_id` of an answer 500.",
        "the layout of an error page failed": "The error is shown without it.",
        "the main loop of the HTTP server failed": BUG,
        "HTTP connection limit reached": "The connection that was idle longest is closed.",
        "cannot replay events": BUG + " The client connects again.",
        "a stream failed": BUG + " The client connects again.",
        "a refusal could not be recorded": "It is missing in the audit log.",
        "a delayed action is unknown": "It was left by another version, and is not done.",
        "no sign-in link goes to the address of an inbox": "Agents read there. Change the address of the "
        "user.",
    },
    "Certificates": {
        "a certificate was issued": "For these names.",
        "an order of a certificate broke off": "Report the traceback: the answer was not foreseen.",
        "no certificate was issued": "With the reason. It is [tried again](tls.md#certificates).",
        "a certificate cannot be used": "With the reason. The others are used.",
        "the port for certificates cannot be used": "`POSTROOM_ACME_HTTP` is taken. Other ways are tried.",
        "a request to port 80 failed": BUG,
        "the DNS provider cannot be asked": "With the reason.",
        "a DNS record is not visible yet": "The authority is asked all the same.",
        "a DNS record stays": "The record of a proof could not be removed. Remove it by hand.",
        "the certificate was read again": "Its file had changed.",
        "the certificate cannot be read": "The previous one stays in use.",
    },
    "Database, search and disk": {
        "the database does not answer": "Everything is answered 503 and 451 until it answers again.",
        "the database answers again": "All continues.",
        "bells were dropped: the database does not answer": "Nothing is lost: nodes look every second.",
        "a connection for bells failed": BUG,
        "a writer failed": BUG,
        "a lock waiter failed": BUG,
        "the log of the database cannot be copied": BUG + " SQLite's log grows meanwhile.",
        "the database is damaged": f"Stored bytes are not those that were written: {SYMPTOM}.",
        "a large email is damaged": f"Stored bytes are not those that were written: {SYMPTOM}.",
        "the search index is rebuilt": f"It was damaged, deleted or replaced: {SYMPTOM}.",
        "the search index is damaged and is rebuilt": f"The file of SQLite: {SYMPTOM}.",
        "the search index is of an earlier version and is rebuilt": "After an upgrade.",
        "the process of the search index ended": "Another is started.",
        "a batch of the search index was refused": BUG + " Its messages are tried one by one.",
        "a message cannot be indexed": BUG + " Searches do not find its words.",
        "no file descriptors are left": "New connections are reset. Raise the limit of the process "
        "(`LimitNOFILE` of "
        "systemd), or find who holds them.",
    },
    "Processes and loops": {
        "not ready": "`/ready` says 503 from now on, and this line why.",
        "a loop waits": "The database or the store of large emails does not answer. It tries twice a second.",
        "a loop works again": "After it had waited or failed.",
        "a loop failed": BUG + " It starts again after a pause.",
        "a loop still fails": "The same error as before, without its traceback.",
        "work was put off": "The database did not answer; what waits is retried.",
        "work failed": BUG,
        "a job failed; it is tried again": "The erasure of a contact continues where it was.",
        "an account is deleted": "It is closed. Its email is removed within minutes.",
        "a worker ended": "Another is started after a pause.",
        "a worker failed": BUG,
        "a worker hangs and is killed": "It has sent nothing for 20 s. Another is started.",
        "a worker's channel was closed": BUG,
        "a child process could not be started": "The system refused it. It is tried after a pause.",
        "spans could not be sent": "The collector of `POSTROOM_OTEL` does not answer; they are lost.",
    },
}
HEAD = """\
<!-- Generated by `make generate` from the source and tools/generate/log_lines.py. Do not edit. -->

# Log lines

Look up a line of the log: what happened, and what to do.

[Incidents](incidents.md#logs) explains where the log is and its form.
"""


def log_lines(_: Description) -> str:
    told = {line for lines in MEANINGS.values() for line in lines}
    if wrong := told ^ written():
        raise ValueError(f"lines of the log without a meaning here, or meanings without a line: {wrong}")
    return HEAD + "".join(part for title in MEANINGS for part in _section(title))


def _section(title: str) -> Iterator[str]:
    yield f"\n## {title}\n\n| line | meaning |\n|---|---|\n"
    for line, meaning in MEANINGS[title].items():
        yield f"| `{line}` | {meaning} |\n"


def written() -> set[str]:
    """Return what every call of the logger in the source says, with … for what it inserts."""
    sources = (path.read_text() for path in SOURCE.rglob("*.py"))
    return {line for source in sources if "log.get()" in source for line in _lines_of(ast.parse(source))}


def _lines_of(module: ast.Module) -> Iterator[str]:
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _is_of_log(node.func):
            yield from _texts(node.args[0], constants)


def _is_of_log(called: ast.expr) -> bool:
    match called:
        case ast.Attribute(value=ast.Call(func=func), attr=level):
            return level in LEVELS and ast.unparse(func) == "log.get"
    return False


def _texts(said: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    match said:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in values)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body, constants)
            yield from _texts(orelse, constants)
        case ast.Name(id=name) if name in constants:
            yield from _texts(constants[name], constants)
