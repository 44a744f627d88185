"""A reason is judged narrowly: only an address that does not exist is its own fault."""

from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.mail.bounces.reasons import found_status, is_about_address, is_hard, reply_code
from tests.samples import samples


@samples(
    ("code", "status", "text"),
    [
        (550, "5.1.1", "no such user"),
        (550, "5.1.0", "Address rejected."),
        (553, "5.1.2", "bad destination system"),
        (556, "5.1.10", "Domain accepts no mail"),
        (None, "5.1.1", ""),
        (550, None, "User unknown in virtual alias table"),
        (550, None, "<spam@policy.example>: Recipient address rejected: unknown user"),
        (550, "5.5.0", "Requested action not taken: mailbox unavailable"),
        (550, "5.2.1", "The account is disabled"),
        (550, "5.0.0", "sorry, no mailbox here by that name"),
        (554, None, "delivery error: dd This user doesn't have a mail.example account"),
        (None, "5.4.4", "Host or domain name not found. Name service error for name=nowhere.example"),
        (None, None, "Unrouteable address"),
        (None, None, "all MX records point to non-existent hosts"),
        (550, None, "The address does not exist"),
        (550, "5.7.1", "No such user!"),
        (550, "5.4.1", "Recipient address rejected: Access denied."),
        (None, None, "Empfänger unbekannt"),
        (None, None, "Cette adresse n'existe pas"),
        (None, None, "EL USUARIO NO EXISTE"),
        (550, None, "пользователь не найден"),
        (None, None, "用户不存在"),
        (None, None, "宛先のユーザーが存在しません"),
        (None, None, "존재하지 않는 사용자"),
    ],
)
def test_a_reason_that_is_the_address(code: int | None, status: str | None, text: str) -> None:
    assert is_about_address(code, status, text)


@samples(
    ("code", "status", "text"),
    [
        (450, "4.1.1", "User unknown, try later"),
        (450, None, "unknown user"),
        (550, "4.1.1", "unknown user"),
        (552, "5.2.2", "mailbox full"),
        (550, "5.1.1", "The mailbox is full, user over quota"),
        (550, "5.7.1", "Message refused as spam"),
        (550, "5.7.26", "no such user may send unauthenticated mail"),
        (550, "5.1.8", "Sender address rejected: Domain not found"),
        (550, "5.1.7", "bad sender"),
        (550, "5.1.0", "Blocked by policy"),
        (554, None, "Your host is on a blacklist"),
        (550, "5.6.0", "bad content"),
        (552, "5.3.4", "message too big"),
        (550, None, "Relaying denied"),
        (None, None, ""),
        (None, "5.4.7", "delivery time expired"),
        (550, None, "Invalid HELO domain name"),
        (550, None, "Your account does not exist on this network"),
        (550, None, "Absender unbekannt: Adresse existiert nicht"),
        (550, None, "remitente no existe"),
        (None, None, "Postfach ist voll"),
        (None, None, "邮箱已满"),
        (None, None, "ящик переполнен"),
        (None, None, "unknown user, try again later"),
        (None, None, "迷惑メール"),
    ],
)
def test_a_reason_that_is_not_the_address(code: int | None, status: str | None, text: str) -> None:
    assert not is_about_address(code, status, text)


@samples(
    ("status", "diagnostic", "hard"),
    [
        ("5.1.1", "", True),
        ("5.7.1", "550 5.7.1 refused", True),
        ("", "550 no", True),
        ("", "421 later", False),
        ("", "", False),
        ("4.4.7", "expired", False),
        ("5.2.2", "552 full", False),
        ("5.0.0", "554 user over quota", False),
        ("5.4.7", "delivery expired, timed out", False),
        ("", "user unknown", True),
        ("", "Benutzer unbekannt", True),
        ("", "your mail was blocked", True),
        ("", "Postfach ist voll", False),
        ("", "zeitweise und vorübergehend nicht erreichbar", False),
        ("", "no reason that is known", False),
    ],
)
def test_a_full_mailbox_and_a_passing_fault_are_soft(status: str, diagnostic: str, hard: bool) -> None:
    assert is_hard(status, diagnostic) is hard


@settings(deadline=None)
@given(st.none() | st.integers(), st.none() | st.text(max_size=20), st.text(max_size=3_000))
def test_any_reply_gets_a_verdict(code: int | None, status: str | None, text: str) -> None:
    assert is_about_address(code, status, text) in {True, False}
    assert is_hard(status or "", text) in {True, False}


REPLIES = [
    (
        "550 5.1.1 <x@y.example>: Recipient address rejected: User unknown in relay recipient table",
        "address",
    ),
    (
        "550 5.1.1 The email account that you tried to reach does not exist. Please try "
        "double-checking the recipient's email address for typos or unnecessary spaces.",
        "address",
    ),
    ("550 5.2.1 The email account that you tried to reach is inactive. Learn more", "address"),
    ("550-5.7.26 This mail has been blocked because the sender is unauthenticated.", "hard"),
    (
        "550 5.7.1 [192.0.2.1 12] Our system has detected that this message is likely unsolicited mail.",
        "hard",
    ),
    ("552 5.2.2 The email account that you tried to reach is over quota", "soft"),
    ("421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to user complaints", "soft"),
    ("554 5.7.9 Message not accepted for policy reasons", "hard"),
    ("550 5.7.606 Access denied, banned sending IP [192.0.2.1]", "hard"),
    ("550 5.4.1 Recipient address rejected: Access denied. [AM0.eop]", "address"),
    ("550 5.7.708 Service unavailable. Access denied, traffic not accepted from this IP", "hard"),
    ("554 5.7.1 <x@y.example>: Relay access denied", "hard"),
    (
        "550 SC-001 (COL004-MC1F1) Unfortunately, messages from 192.0.2.1 weren't sent. Please "
        "contact your Internet service provider since part of their network is on our block list",
        "hard",
    ),
    (
        "550 5.7.515 Access denied, sending domain postroom.example doesn't meet the required "
        "authentication level",
        "hard",
    ),
    ("554 5.1.1 Mailbox does not exist", "address"),
    (
        "550 Requested action not taken: mailbox unavailable invalid DNS MX or A/AAAA resource record",
        "hard",
    ),
    ("554 Transaction failed Reject due to policy restrictions", "hard"),
    ("550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR_416", "address"),
    ("550 5.7.1 Service refused. Veuillez essayer plus tard", "hard"),
    ("451 4.3.0 Mail server temporarily rejected message", "soft"),
    ("550 permanent failure for one or more recipients (x@y.example:blocked)", "hard"),
    ("550 #5.1.0 Address rejected.", "address"),
    ("550 5.1.1 RESOLVER.ADR.ExRecipNotFound; not found", "address"),
    (
        "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient x@y.example not found by SMTP address lookup",
        "address",
    ),
    ("550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required", "hard"),
    ("554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException", "soft"),
    ("550 5.1.6 recipient no longer on server", "address"),
    ("550 5.1.3 The recipient address is not a valid RFC-5321 address", "address"),
    ("501 5.1.3 Bad recipient address syntax", "address"),
    ("553 5.1.2 We weren't able to find the recipient domain.", "address"),
    ("550 5.1.2 <x@y.example>: Recipient address rejected: Domain not found", "address"),
    ("450 4.1.8 <a@b.example>: Sender address rejected: Domain not found", "soft"),
    ("553 5.1.8 <a@b.example>: Sender address rejected: Domain not found", "hard"),
    ("550 Sender verify failed", "hard"),
    ("550 Verification failed for <a@b.example> Unrouteable address Sender verify failed", "hard"),
    ("550 No Such User Here", "address"),
    ("550 no such address here", "address"),
    ("550 Invalid recipient <x@y.example>", "address"),
    ("550 unknown user", "address"),
    ("550 User not local; please try <x@z.example>", "hard"),
    ("551 User not local", "hard"),
    ("552 Message size exceeds maximum permitted", "hard"),
    ("552 5.3.4 Message too big for system", "hard"),
    ("554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org", "hard"),
    ("550 High probability of spam", "hard"),
    ("550 Administrative prohibition", "hard"),
    ("550 This message was classified as SPAM and may not be delivered", "hard"),
    ("554 5.4.14 Hop count exceeded - possible mail loop ATTR34", "hard"),
    ("554 5.4.6 Too many hops", "hard"),
    ("550 5.1.1 User has moved; please try <x@z.example>", "address"),
    ("550 Account disabled", "address"),
    ("550 5.2.1 Mailbox disabled for this recipient", "address"),
    (
        "554 delivery error: dd Sorry your message to x@y.example cannot be delivered. This "
        "account has been disabled or discontinued [#102].",
        "address",
    ),
    ("550 Mailbox is inactive", "address"),
    ("550 Mailbox is frozen. See http://service.mail.qq.com", "hard"),
    ("550 Domain frequency limited", "hard"),
    ("550 Connection frequency limited", "hard"),
    ("554 DT:SPM 163 mx1", "hard"),
    ("550 MI:IMF 163", "hard"),
    ("550 RP:TRC", "hard"),
    (
        "550 Message was not accepted -- invalid mailbox. Local mailbox x@mail.example is "
        "unavailable: account is disabled",
        "address",
    ),
    ("550 spam message rejected. Please visit http://help.mail.example", "hard"),
    ("550 5.7.1 No such user!", "address"),
    ("554 5.7.1 [2] Message rejected under suspicion of SPAM", "hard"),
    ("550 5.2.1 Recipient cannot receive this message", "hard"),
    ("550 5.0.0 <x@y.example>... User unknown", "address"),
    ("553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", "hard"),
    ("553 5.3.0 <x@y.example>... No such user here", "address"),
    ("Connection timed out", "soft"),
    (
        "Host or domain name not found. Name service error for name=y.example type=MX: Host not found",
        "address",
    ),
    (
        "Host or domain name not found. Name service error for name=y.example type=MX: Host not "
        "found, try again",
        "soft",
    ),
    (
        "Name service error for name=y.example type=AAAA: Host found but no data record of requested type",
        "soft",
    ),
    ("mail for y.example loops back to myself", "soft"),
    ('unknown user: "bob"', "address"),
    ("maildir delivery failed: The user's maildir has overdrawn his diskspace quota", "soft"),
    ("Command died with status 127", "soft"),
    ("lost connection with mx.y.example while sending RCPT TO", "soft"),
    ("550 5.1.1 Recipient Not Found", "address"),
    ("550 relay not permitted", "hard"),
    ("550 authentication required", "hard"),
    ("530 5.7.1 Client was not authenticated", "hard"),
    ("550 Blocked - see https://support.proofpoint.example/dnsbl-lookup.cgi?ip=192.0.2.1", "hard"),
    ("550 Rejected by header based manually Blocked Senders", "hard"),
    ("550 Invalid Recipient - https://community.mimecast.example/docs/DOC-1369#550", "address"),
    ("451 Internal resource temporarily unavailable", "soft"),
    ("550 5.7.0 Local Policy Violation", "hard"),
    ("550 Envelope blocked - User Entry", "hard"),
    ("550 Not our Customer", "address"),
    ("550 5.1.1 unknown or illegal alias: x@y.example", "address"),
    ("511 5.1.1 unknown address or alias", "address"),
    ("556 5.1.10 Recipient address has null MX", "address"),
    ("550 5.1.1 sorry, no mailbox here by that name (#5.1.1 - chkuser)", "address"),
    ("The recipient's mailbox is over its limit", "soft"),
    ("550 Benutzer hat zuviele Mails auf dem Server", "hard"),
    ("550 El usuario no existe", "address"),
    ("550 Utente sconosciuto", "address"),
    ("550 Destinatario desconocido", "address"),
    ("550 Неизвестный пользователь", "address"),
]


@samples(("reply", "judgement"), REPLIES)
def test_a_reply_as_servers_write_it_is_judged(reply: str, judgement: str) -> None:
    status = found_status(reply)
    assert is_about_address(reply_code(reply), status or None, reply) is (judgement == "address")
    assert is_hard(status, reply) is (judgement != "soft")
