"""Posts of mail services, read from their bytes: good, forged, too old and broken."""

from collections.abc import Callable
from urllib.parse import unquote_to_bytes

import pytest

from postroom.external_mailboxes.providers import form, signing_keys
from postroom.external_mailboxes.providers.mailgun import read_mailgun
from postroom.external_mailboxes.providers.plain import read_plain
from postroom.external_mailboxes.providers.post import (
    MAX_UNPROVEN_BYTES,
    BrokenPost,
    ForgedPost,
    Post,
    Posted,
)
from postroom.external_mailboxes.providers.postmark import read_postmark
from postroom.external_mailboxes.providers.resend import download_url, read_resend
from postroom.external_mailboxes.providers.sendgrid import read_sendgrid
from postroom.external_mailboxes.providers.ses import certificate_url, read_ses, require_amazon
from postroom.inward.mails import UNKNOWN_PEER
from tests.connections import provider_posts as made
from tests.connections.provider_posts import MAIL, RECIPIENT, SECONDS, SENDER
from tests.samples import samples

Read = Callable[[Post, str], Posted]
KEY = "a key of the service"
ASCII_MAIL = MAIL.replace(b"\xfc\xdf", b"uess")


def with_body(post: Post, body: bytes) -> Post:
    return Post(post.headers, post.query, body, post.now)


def test_a_mail_of_each_service_is_read_byte_for_byte_with_its_envelope() -> None:
    sent = {
        "raw": read_plain(made.raw(KEY), KEY),
        "mailgun": read_mailgun(made.mailgun(KEY), KEY),
        "sendgrid": read_sendgrid(made.sign_for_sendgrid(made.sendgrid()), made.sendgrid_public_key()),
        "ses": read_ses(made.sns(made.ses_received()), made.sns_certificate()),
    }
    for name, posted in sent.items():
        assert posted.mail is not None, name
        assert posted.mail.raw == MAIL, name
        assert (posted.mail.recipients, posted.mail.mail_from) == ((RECIPIENT,), SENDER), name
    assert sent["sendgrid"].mail.peer_ip == "198.51.100.7"  # type: ignore[union-attr]
    assert sent["raw"].mail.peer_ip == UNKNOWN_PEER  # type: ignore[union-attr]
    assert sent["mailgun"].post_id == "a" * 50


def test_postmark_gives_the_mail_as_text_and_proves_itself_by_a_password() -> None:
    posted = read_postmark(made.postmark(ASCII_MAIL, password="secret"), "secret")
    assert posted.mail is not None
    assert (posted.mail.raw, posted.mail.recipients) == (ASCII_MAIL, (RECIPIENT,))
    with pytest.raises(ForgedPost, match="password"):
        read_postmark(made.postmark(ASCII_MAIL), "secret")
    with pytest.raises(ForgedPost, match="wrong"):
        read_postmark(made.postmark(ASCII_MAIL, password="guess"), "secret")


def test_resend_gives_the_id_of_a_mail() -> None:
    posted = read_resend(
        made.resend(made.resend_received("56761188-7520"), made.RESEND_SECRET), made.RESEND_SECRET
    )
    assert (posted.fetch, posted.post_id) == ("56761188-7520", "msg_1")
    assert download_url(b'{"raw": {"download_url": "https://cdn.example/x"}}') == "https://cdn.example/x"


@samples(
    ("read", "post", "key"),
    [
        (read_plain, made.raw(), KEY),
        (read_plain, made.raw("another key"), KEY),
        (read_plain, with_body(made.raw(KEY), MAIL + b"more"), KEY),
        (read_mailgun, made.mailgun("another key"), KEY),
        (read_mailgun, made.mailgun(KEY, token=""), KEY),
        (read_mailgun, made.mailgun_event({"event": "complained"}, "another key"), KEY),
        (read_sendgrid, made.sendgrid(), made.sendgrid_public_key()),
        (
            read_sendgrid,
            with_body(made.sign_for_sendgrid(made.sendgrid()), made.sendgrid(MAIL + b"more").body),
            made.sendgrid_public_key(),
        ),
        (read_resend, made.resend(made.resend_received("1")), made.RESEND_SECRET),
        (read_resend, made.resend(made.resend_received("1"), "whsec_aGVsbG8="), made.RESEND_SECRET),
    ],
)
def test_a_forged_post_is_refused(read: Read, post: Post, key: str) -> None:
    with pytest.raises(ForgedPost):
        read(post, key)


@samples(
    ("read", "post", "key"),
    [
        (read_plain, made.raw(KEY, seconds=SECONDS - 301), KEY),
        (read_plain, made.raw(KEY, seconds=SECONDS + 301), KEY),
        (read_mailgun, made.mailgun(KEY, seconds=SECONDS - 12 * 3600 - 1), KEY),
        (
            read_sendgrid,
            made.sign_for_sendgrid(made.sendgrid(), SECONDS - 5 * 24 * 3600),
            made.sendgrid_public_key(),
        ),
        (
            read_resend,
            made.resend(made.resend_received("1"), made.RESEND_SECRET, SECONDS - 301),
            made.RESEND_SECRET,
        ),
    ],
)
def test_a_post_whose_signature_is_too_old_is_refused(read: Read, post: Post, key: str) -> None:
    with pytest.raises(ForgedPost, match="too old"):
        read(post, key)


@samples(
    ("read", "post"),
    [
        (read_plain, made.raw(body=b" \r\n")),
        (read_mailgun, made.json_post([])),
        (read_mailgun, made.json_post({"signature": {}})),
        (read_mailgun, made.form_post({"body-plain": b"parsed"})),
        (read_mailgun, with_body(made.mailgun(), made.mailgun().body[:-9])),
        (read_mailgun, with_body(made.mailgun(), b"")),
        (read_mailgun, Post({"content-type": "text/plain"}, {}, MAIL, 0)),
        (read_mailgun, Post({"content-type": "multipart/form-data; boundary=" + "b" * 400}, {}, b"--b", 0)),
        (read_sendgrid, made.form_post({"text": b"parsed"})),
        (read_sendgrid, made.form_post({"email": MAIL, "envelope": b"[["})),
        (read_sendgrid, made.json_post({"event": "bounce"})),
        (read_postmark, made.json_post({"TextBody": "parsed"})),
        (read_postmark, Post({}, {}, b"[" * 100_000, 0)),
        (read_resend, made.json_post({"type": "email.received", "data": {"email_id": "../keys"}})),
        (read_resend, made.json_post({"type": "email.received"})),
    ],
)
def test_a_broken_post_is_told_apart_and_says_what_is_wrong(read: Read, post: Post) -> None:
    with pytest.raises(BrokenPost):
        read(post, "")


def test_a_form_is_read_from_urlencoded_bytes_too() -> None:
    body = b"recipient=hello%40postroom.localhost&sender=&body-mime=Subject%3A+x%0D%0A%0D%0A%fc"
    posted = read_mailgun(Post({"content-type": "application/x-www-form-urlencoded"}, {}, body, 0), "")
    assert posted.mail is not None
    assert posted.mail.raw == b"Subject: x\r\n\r\n\xfc"


def urlencoded(fields: dict[str, bytes]) -> Post:
    body = b"&".join(name.encode() + b"=" + value for name, value in fields.items())
    return Post({"content-type": "application/x-www-form-urlencoded"}, {}, body, SECONDS * 1000)


def test_a_long_urlencoded_mail_is_decoded_whole() -> None:
    """It is decoded in pieces, whose ends may fall into an escape."""
    raw = bytes(range(256)) * 1_000
    for before in range(4):
        written = b"a" * before + b"".join(b"%%%02x" % byte for byte in raw)
        posted = read_mailgun(urlencoded({"body-mime": written}), "")
        assert posted.mail is not None
        assert posted.mail.raw == b"a" * before + raw
    for odd in (b"%" * 200_000, b"%4" * 100_000, b"a+b%2B" * 50_000):
        posted = read_mailgun(urlencoded({"body-mime": odd}), "")
        assert posted.mail is not None
        assert posted.mail.raw == unquote_to_bytes(odd.replace(b"+", b" "))


def test_an_urlencoded_mail_is_decoded_behind_its_signature_and_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[int] = []

    def note(piece: bytes) -> bytes:
        decoded.append(len(piece))
        return unquote_to_bytes(piece)

    monkeypatch.setattr(form, "unquote_to_bytes", note)
    mail = b"%41" * 200_000
    unsigned = {"timestamp": str(SECONDS).encode(), "token": mail, "signature": mail, "body-mime": mail}
    with pytest.raises(ForgedPost):
        read_mailgun(urlencoded(unsigned), KEY)
    assert sum(decoded) < 10_000
    read_mailgun(urlencoded({"body-mime": mail}), "")
    assert max(decoded) <= form.CHUNK_BYTES


def test_a_body_that_holds_its_own_signature_is_bounded() -> None:
    """Nobody knows who wrote it before it is decoded."""
    large = made.json_post({"signature": '\\"' * MAX_UNPROVEN_BYTES})
    for read in (read_mailgun, lambda post, _: certificate_url(post), lambda post, _: read_ses(post, b"")):
        with pytest.raises(BrokenPost, match="larger"):
            read(large, KEY)


def test_a_form_of_many_fields_is_refused() -> None:
    body = b"&".join(b"a=1" for _ in range(1_001))
    with pytest.raises(BrokenPost, match="too many"):
        read_mailgun(Post({"content-type": "application/x-www-form-urlencoded"}, {}, body, 0), "")
    with pytest.raises(BrokenPost, match="too many"):
        read_mailgun(made.form_post({f"a{number}": b"" for number in range(1_001)}), "")


@samples("version", ["1", "2"])
def test_sns_is_proved_by_its_certificate_in_both_versions(version: str) -> None:
    post = made.sns(made.ses_received(), SignatureVersion=version)
    assert read_ses(post, made.sns_certificate()).topic == made.TOPIC
    assert certificate_url(post) == made.CERTIFICATE_URL


def test_a_forged_or_old_post_of_sns_is_refused() -> None:
    for post in (
        made.sns(made.ses_received(), SignatureVersion="3"),
        with_body(made.sns("{}"), made.sns("{}").body.replace(b"123456789012", b"000000000000")),
        made.sns(made.ses_received(), seconds=SECONDS - 25 * 3600),
        made.sns(made.ses_received(), Timestamp="yesterday"),
        with_body(made.sns("{}"), b'{"Type": "Notification", "SignatureVersion": "2"}'),
    ):
        with pytest.raises(ForgedPost):
            read_ses(post, made.sns_certificate())
    with pytest.raises(ForgedPost):
        read_ses(made.sns("{}"), b"no certificate")


def test_the_handshake_of_sns_leads_to_amazon_alone() -> None:
    posted = read_ses(made.sns("You have chosen …", "SubscriptionConfirmation"), made.sns_certificate())
    assert (posted.confirm, posted.topic) == (made.SUBSCRIBE_URL, made.TOPIC)
    for url in (
        "http://sns.eu-central-1.amazonaws.com/x.pem",
        "https://amazonaws.com.evil.example/x.pem",
        "https://evilamazonaws.com/x.pem",
        "https://sns.amazonaws.com@evil.example/x.pem",
        "https://user@sns.amazonaws.com/x.pem",
        "https://sns.amazonaws.com:8443/x.pem",
        "https://[::1/x",
        "",
    ):
        with pytest.raises(ForgedPost, match="amazonaws"):
            require_amazon(url)


def test_a_notice_of_ses_without_the_mail_says_what_to_set() -> None:
    notice = made.ses_received() | {"content": ""}
    with pytest.raises(BrokenPost, match="SNS action"):
        read_ses(made.sns(notice), made.sns_certificate())
    with pytest.raises(BrokenPost, match="base64"):
        read_ses(made.sns(made.ses_received() | {"content": "%%%"}), made.sns_certificate())
    assert read_ses(made.sns("{}", "UnsubscribeConfirmation"), made.sns_certificate()).mail is None


def test_bounces_and_complaints_of_each_service_are_reports() -> None:
    failed = {"event": "failed", "severity": "permanent", "recipient": "bob@example.org"}
    reports = {
        "mailgun": read_mailgun(made.mailgun_event(failed, KEY), KEY).reports,
        "sendgrid": read_sendgrid(
            made.sendgrid_events({"event": "delivered"}, {"event": "bounce", "email": "bob@example.org"}), ""
        ).reports,
        "postmark": read_postmark(made.postmark_report("Bounce", "bob@example.org", "unknown"), "").reports,
        "ses": read_ses(
            made.sns(made.ses_bounce("bob@example.org", "<1@x>")), made.sns_certificate()
        ).reports,
        "resend": read_resend(
            made.resend({"type": "email.bounced", "data": {"to": ["bob@example.org"]}}), ""
        ).reports,
    }
    for name, found in reports.items():
        assert [report.kind for report in found] == ["bounce"], name
        assert found[0].recipients[0].final_recipient == "bob@example.org", name
    complaint = read_postmark(made.postmark_report("SpamComplaint", "bob@example.org", ""), "").reports
    assert [report.kind for report in complaint] == ["complaint"]


def test_a_signing_key_has_the_form_of_its_service() -> None:
    assert signing_keys.is_usable("sendgrid", made.sendgrid_public_key())
    assert signing_keys.is_usable("ses", made.sns_certificate().decode())
    assert signing_keys.is_usable("resend", made.RESEND_SECRET)
    assert signing_keys.is_usable("mailgun", "anything")
    for provider in signing_keys.WANTED:
        assert not signing_keys.is_usable(provider, "anything")
