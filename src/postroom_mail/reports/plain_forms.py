# ruff: noqa: RUF001 (words of other languages use letters that look Latin)
"""A table of plain report formats: where each family of servers names a recipient, and where it begins to
quote the returned mail.
"""

import re

from postroom_mail.languages.patterns import late
from postroom_mail.languages.read import word_lists

_LISTS = word_lists("postroom_mail.reports", "words.txt")
_RECIPIENT, _REASON = "|".join(_LISTS["recipient"]), "|".join(_LISTS["reason"])

_ADDRESS = r"[^\s<>()\[\]\"'“”「」『』【】«»,;:：，。、]{1,120}@[\w.-]{1,200}\w"

_BULLET = r"[ \t*•>-]{0,9}"
_END = r"[ \t.]{0,9}$"
_REMARK = r"(?:[ \t]?\([^()\n]{0,200}\))?"
_LABEL_END = rf"[\]】]?[ \t]{{0,30}}{_REMARK}[ \t]?[:：=][ \t]{{0,30}}"

# In this order: the first form that names somebody is used. Group 1 is the address.
RECIPIENT_FORMS: dict[str, re.Pattern[str]] = {
    "qmail, Postfix": late(rf"^[ \t]{{0,4}}<({_ADDRESS})>{_REMARK}:"),
    "relatives of qmail": late(rf"^({_ADDRESS}):(?=\s|$)"),
    "a reason in brackets": late(rf"^[ \t]{{0,9}}({_ADDRESS})[ \t](?=\[[^\]\n]{{2,200}}\]{_END})"),
    "iMail": late(rf"^{_BULLET}(?:undeliverable|not delivered|delivery failed) to:? <?({_ADDRESS})", re.I),
    "Exchange, with a date": late(
        rf"^[ \t]{{0,9}}[<'\"]?({_ADDRESS})[>'\"]?,? [^\n]{{0,60}}?\d{{1,2}}[:.]\d\d"
    ),
    "sendmail, Courier": late(rf"^[ \t]{{0,9}}<({_ADDRESS})>{_END}"),
    "exim, Gmail": late(rf"^[ \t]{{2,9}}({_ADDRESS}){_REMARK}:?{_END}"),
    "a label before the address": late(
        rf"^{_BULLET}[\[【]?(?:{_RECIPIENT}){_LABEL_END}[<\"'\[]{{0,2}}({_ADDRESS})", re.I
    ),
    "newer Exchange": late(
        rf"^[^\n<>()@]{{0,80}}[(<\[]({_ADDRESS})[)>\]](?:<mailto:[^<>\n]{{0,320}}>)?{_END}"
    ),
    "Outlook, with a link": late(rf"^[^\n<>@]{{0,80}}?({_ADDRESS})<mailto:"),
    "the address on a line": late(rf"^{_BULLET}['\"]?({_ADDRESS})['\"]?{_END}"),
    "a transcript": late(rf"^[^\n]{{0,200}}?RCPT TO:\s?<?({_ADDRESS})", re.I),
    "smail": late(rf"^{_BULLET}<?({_ADDRESS})>?[ \t]{{0,9}}(?:\.\.\.|--|–|—|-|\||=>|->)[ \t]"),
}
ANY_ADDRESS = late(_ADDRESS)
NEXT_IN_LIST = late(rf"[>'\"\]]?[,;][ \t]{{0,9}}[<'\"\[]?({_ADDRESS})")

# In the transcript of a session: the command, and the refusal that it met.
REFUSED_SENDER = late(r"^>>> ?(?:MAIL|HELO|EHLO)\b[^\n]{0,900}\n<<< ?5\d\d", re.I | re.M)
REFUSED_RECIPIENT = late(r"^>>> ?RCPT\b[^\n]{0,900}\n<<< ?5\d\d", re.I | re.M)
REASON_LINE = late(rf"^{_BULLET}[\[【]?(?:{_REASON}){_LABEL_END}(\S[^\n]{{0,900}})?$", re.I)

COPY_STARTS = late(
    r"^[ \t]{0,4}(?:"
    r"-{1,60} ?(?:below this line|this is a copy|original message|original mail|unsent message|returned m"
    r"|message header"
    r"|the header of the orig|the headers of the orig|message body|message follows|header of the"
    r"|headers? follow|begin|enclosed|copy of|forwarded"
    r"|ursprüngliche|originalnachricht|message d.origine|message original|mensaje original"
    r"|mensagem original|messaggio originale"
    r"|oorspronkelijk|ursprungligt|oprindelig|opprinnelig|oryginalna|wiadomość|původní|исходное"
    r"|оригинальное|eredeti|αρχικό|özgün|orijinal"
    r"|原始|原邮件|以下|元の|원본|원문)"
    r"|original message (?:headers|follows|header)|original headers|message headers? follow"
    r"|the original message (?:headers|follows|header)"
    r"|the headers of the original|(?:your )?original message:|undelivered message|message contents follow"
    r"|the following is a copy"
    r"|ursprüngliche nachrichtenkopf|ursprüngliche nachricht|kopfzeilen der|message d.origine"
    r"|en-têtes de message|encabezados de mensaje"
    r"|mensaje original|intestazioni (?:originali|del messaggio)|messaggio originale|cabeçalhos"
    r"|oorspronkelijke bericht"
    r"|(?:原始邮件|原始郵件|原邮件|邮件原文|元のメール|元のメッセージ|원본 메일|원본 메시지)[:：]?[ \t]{0,9}$"
    r"|исходное сообщение|заголовки исходного|текст исходного"
    r"|(?:return-path|received|dkim-signature|message-id|mime-version|x-mailer"
    r"|delivered-to)[ \t]{0,3}:[ \t]{0,3}\S"
    r")",
    re.I,
)
