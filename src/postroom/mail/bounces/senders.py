# ruff: noqa: RUF001 (words of other languages use letters that look Latin)
"""Whether a mail comes from a mail system, or is an automatic answer, a list mail, the reply of a person."""

import re

from postroom.mail.bounces import wording
from postroom.mail.bounces.notice import Notice

_SYSTEM_LOCAL_PART = re.compile(
    r"(?:mail(?:er)?[-_. ]?daemon|mdaemon|daemon|post-?master|mail[-_. ]?(?:system|server|router"
    r"|delivery(?:[-_. ]?\w{1,20})?"
    r"|admin(?:istrator)?|er|gateway|robot)|(?:system[-_. ]?)?admin(?:istrator)?|bounces?"
    r"|bounced?[-_.]?(?:mail|notification|handler)"
    r"|smtp(?:[-_.]?\w{1,20})?|undeliver\w{1,10}|non-?delivery|ndr|dsn|microsoftexchange[0-9a-f]{16,40}"
    r"|internet-?mail"
    r"|exim|qmaild?|mmdf|root|mta|mailfilter|quarantine|delivery[-_.]?\w{0,20})(?:[+=-][\w.=+-]{0,64})?",
)
_SYSTEM_NAMES = (
    "mail delivery", "mailer-daemon", "mailer daemon", "mail administrator", "system administrator",
    "postmaster", "mail system", "delivery subsystem", "delivery system", "delivery service",
    "delivery agent", "microsoft outlook", "microsoft exchange", "mail router", "mailserver", "mail server",
    "systemadministrator", "mail-system", "administrateur système", "administrateur systeme",
    "administrador del sistema", "administrador do sistema", "amministratore di sistema", "systembeheerder",
    "systemadministratör", "administrator systemu", "системный администратор", "администратор",
    "система доставки", "почтовая система", "доставка почты", "sistem yöneticisi", "systeembeheerder",
    "správce systému", "rendszergazda", "järjestelmänvalvoja", "系统管理员", "系統管理員", "系统退信",
    "邮件系统", "郵件系統", "システム管理者", "メール配信", "시스템 관리자", "메일 시스템", "메일시스템",
    "diretor de sistema", "sistema de correo", "sistema de e-mail", "système de messagerie",
)  # fmt: skip

_ANSWER_SUBJECTS = (
    "automatic reply", "auto reply", "autoreply", "auto-reply", "auto response", "auto-response",
    "autoresponse", "autoresponder", "out of office", "out of the office", "vacation", "on holiday",
    "away from", "on leave", "read receipt", "automatische antwort", "automatisch antwoord", "abwesenheit",
    "abwesend", "abwesenheitsnotiz", "nicht im büro", "réponse automatique", "absence du bureau", "en congé",
    "respuesta automática", "respuesta automatica", "fuera de la oficina", "risposta automatica",
    "fuori sede", "fuori ufficio", "resposta automática", "fora do escritório", "ausência", "afwezig",
    "autosvar", "automatiskt svar", "frånvaro", "fraværende", "automatisk svar", "automaattinen vastaus",
    "autoodpowiedź", "automatyczna odpowiedź", "nieobecność", "automatická odpověď", "mimo kancelář",
    "автоответ", "автоматический ответ", "вне офиса", "автовідповідь", "automatikus válasz",
    "αυτόματη απάντηση", "otomatik yanıt", "ofis dışında", "自动回复", "自動回覆", "自動返信", "자동 회신",
    "자동회신", "부재중", "trả lời tự động", "balasan otomatis", "תשובה אוטומטית", "رد تلقائي",
    "răspuns automat", "thank you for your", "thank you for contacting", "we have received your",
    "we received your", "[ticket", "ticket #", "case #", "your request", "confirm your", "verify your",
    "please confirm", "confirmation required", "action required to deliver", "sender verification",
    "verification required", "challenge",
)  # fmt: skip
_ANSWER_STARTS = (
    "read:", "not read:", "delivered:", "relayed:", "opened:", "recall:", "gelesen:", "lu :", "lu:",
    "leído:", "letto:", "lida:", "auto:", "absent", "poissa", "不在", "外出", "approve",
)  # fmt: skip
_ANSWER_WORDS = (
    "on my approved sender", "sender verification required", "out of the office", "out of office",
    "on vacation", "on annual leave", "read receipt", "was displayed on", "was read on",
    "prove that you are human", "prove you are human", "prove you are a human", "to complete delivery",
    "to complete the delivery", "click here to release", "confirm that you are a person",
    "will be delivered once you", "awaiting verification", "awaiting your confirmation",
    "waiting for your confirmation", "to have your message delivered", "delivered automatically once",
    "you are not on my", "not yet in my address book", "reply to this message to confirm", "spam arrest",
    "boxbe", "ich bin derzeit nicht", "ich bin bis", "je suis absent", "estaré fuera", "sono fuori ufficio",
    "bin ich nicht im büro",
)  # fmt: skip
_ANSWER_FIELDS = (
    "x-autoreply", "x-autorespond", "x-autoresponder", "x-vacation", "x-auto-reply", "x-autoreply-from",
    "x-mail-autoreply", "x-autoreply-id", "x-tmda-confirm", "x-boxbe-request",
)  # fmt: skip
_OPERATOR_SUBJECTS = (
    "postfix smtp server: errors",
    "postmaster copy:",
    "mail queue",
    "logwatch",
    "quarantine",
)
_LIST_FIELDS = ("list-id", "list-unsubscribe", "list-post", "list-help")
_ANSWER_TYPES = {"message/disposition-notification", "message/global-disposition-notification"}
_REPLY = re.compile(
    r"\s{0,9}(?:re|aw|antw|sv|vs|odp|ynt|fw|fwd|wg|tr|rv|enc|i|转发|回复|答复)\s?(?:\[\d+\])?\s?[:：]", re.I
)


def is_mail_system(notice: Notice, mail_from: str | None) -> bool:
    """By the empty envelope sender, or by the name it gives itself."""
    return has_null_sender(notice, mail_from) or is_named_as_system(notice)


def is_named_as_system(notice: Notice) -> bool:
    return is_system_name(notice.from_name, notice.from_address)


def is_system_name(name: str, address: str) -> bool:
    if _SYSTEM_LOCAL_PART.fullmatch(address.lower().partition("@")[0][:200]):
        return True
    lower = name.lower()[:200]
    return any(map(lower.__contains__, _SYSTEM_NAMES))


def has_null_sender(notice: Notice, mail_from: str | None) -> bool:
    """Reports and answers must not be answered, so they name no sender (RFC 5321 section 4.5.5)."""
    return mail_from == "" or (mail_from is None and notice.fields.text("return-path").strip() == "<>")


def is_automatic_answer(notice: Notice) -> bool:
    """An answer that a program gives on behalf of its owner: the mail has arrived."""
    if notice.first_of(_ANSWER_TYPES) or any(notice.fields.count(name) for name in _ANSWER_FIELDS):
        return True
    if "auto_reply" in notice.fields.text("precedence").lower():
        return True
    subject = notice.subject.lower().lstrip()
    words = notice.words[:3_000].lower()
    if any(each in words for each in _ANSWER_WORDS):
        return True
    # A bounce repeats the subject of the mail it returns, which may itself be an answer.
    if wording.says_failure(subject):
        return False
    return subject.startswith(_ANSWER_STARTS) or any(each in subject for each in _ANSWER_SUBJECTS)


def is_dmarc_report(notice: Notice) -> bool:
    """It tells the owner of a domain about mail in its name, which may be anyone's."""
    subject = notice.subject.lower()
    return "dmarc" in subject and "report" in subject and not wording.says_failure(subject)


def is_list_mail(notice: Notice) -> bool:
    return any(notice.fields.count(name) for name in _LIST_FIELDS)


def is_reply(notice: Notice) -> bool:
    """A reply or a forward, as people write them."""
    return _REPLY.match(notice.subject) is not None


def is_personal_answer(notice: Notice) -> bool:
    """Written by a person or a person's program: it comes from one who has got the mail."""
    is_answered = notice.fields.text("auto-submitted").lower().startswith("auto-replied")
    return not is_named_as_system(notice) and (is_answered or is_reply(notice))


def is_for_operators(notice: Notice) -> bool:
    """What a mail system tells those who run it, about the mail of others."""
    subject = notice.subject.lower()
    return any(each in subject for each in _OPERATOR_SUBJECTS)
