# ruff: noqa: RUF001 (words of other languages use letters that look Latin)
"""What mail programs write, in many languages, above a quoted mail and below a reply."""

import re
from collections.abc import Iterable

# "On Monday, Ann wrote:" as mail programs say it, by how it begins and how it ends.
HEAD_STARTS = (
    "on ", "am ", "le ", "el ", "em ", "il ", "op ", "den ", "dne ", "dnia ", "w dniu ", "w ", "pe ",
    "ma ", "på ", "a ", "в ", "у ", "la ", "în ", "vào ", "pada ", "ngày ", "στις ", "на ", "em\u00a0",
    "-----", "在",
)  # fmt: skip
HEAD_ENDS = (
    "wrote:", "writes:", "schrieb:", "geschrieben:", "a écrit :", "a écrit:", "écrivait :", "escribió:",
    "escribio:", "ha scritto:", "escreveu:", "schreef:", "schreef het volgende:", "skrev:",
    "skrev følgende:", "kirjoitti:", "napisał(a):", "napisał:", "napisała:", "napsal(a):", "napsal:",
    "napísal(a):", "írta:", "a scris:", "yazdı:", "şunu yazdı:", "написал:", "написала:", "написал(а):",
    "пишет:", "написав:", "написав(ла):", "έγραψε:", "写道：", "写道:", "寫道：", "寫道:",
    "書きました:", "작성:", "đã viết:", "menulis:", "va escriure:",
)  # fmt: skip
HEAD_FIELDS = {
    "from", "sent", "to", "subject", "date", "cc", "reply-to", "von", "gesendet", "an", "betreff",
    "datum", "de", "envoyé", "à", "objet", "enviado", "enviado el", "para", "asunto", "assunto", "da",
    "inviato", "a", "oggetto", "data", "van", "verzonden", "aan", "onderwerp", "från", "skickat",
    "till", "ämne", "fra", "sendt", "til", "emne", "od", "wysłano", "do", "temat", "odesláno", "komu",
    "předmět", "lähettäjä", "lähetetty", "vastaanottaja", "aihe", "от", "отправлено", "кому", "тема",
    "дата", "від", "надіслано", "gönderen", "gönderildi", "kime", "konu", "发件人", "发送时间",
    "收件人", "主题", "差出人", "送信日時", "宛先", "件名", "보낸 사람", "보낸 날짜", "받는 사람",
    "제목",
}  # fmt: skip
# The fields a copied head begins with; "To:" alone may well start a sentence of one's own.
FIRST_FIELDS = {
    "from", "von", "de", "da", "van", "från", "fra", "od", "lähettäjä", "от", "від", "gönderen",
    "发件人", "差出人", "보낸 사람",
}  # fmt: skip
RULED_WORDS = (
    "original message", "original appointment", "forwarded message", "forwarded by",
    "ursprüngliche nachricht", "originalnachricht", "weitergeleitete nachricht", "message d'origine",
    "message original", "message transféré", "mensaje original", "mensaje reenviado",
    "mensagem original", "mensagem encaminhada", "messaggio originale", "messaggio inoltrato",
    "oorspronkelijk bericht", "doorgestuurd bericht", "ursprungligt meddelande",
    "oprindelig meddelelse", "opprinnelig melding", "wiadomość oryginalna", "původní zpráva",
    "исходное сообщение", "пересылаемое сообщение", "özgün ileti", "原始邮件", "元のメッセージ",
)  # fmt: skip
FORWARD_HEADS = {
    "begin forwarded message:", "anfang der weitergeleiteten nachricht:",
    "début du message réexpédié :", "début du message transféré :", "inicio del mensaje reenviado:",
    "inizio messaggio inoltrato:", "início da mensagem reencaminhada:", "begin doorgestuurd bericht:",
    "vidarebefordrat brev:",
}  # fmt: skip
DEVICE_LINES = (
    "sent from my ", "sent from outlook", "sent from mail for ", "sent from yahoo mail", "sent via ",
    "get outlook for ", "von meinem ", "gesendet von ", "gesendet mit ", "envoyé de mon ",
    "envoyé depuis ", "envoyé à partir de ", "enviado desde ", "enviado do meu ", "enviado de mi ",
    "inviato da ", "verzonden vanaf ", "verstuurd vanaf ", "verstuurd met ", "skickat från ",
    "skickades från ", "sendt fra ", "lähetetty ", "wysłane z ", "odesláno z ", "отправлено с ",
    "надіслано з ", "outlook für ", "télécharger outlook", "obtener outlook", "iphone'umdan",
)  # fmt: skip


def one_of(words: Iterable[str], behind: str) -> str:
    """An alternative for each first letter, which lets the search skip all other letters."""
    endings: dict[str, list[str]] = {}
    for word in words:
        endings.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rest)}){behind}" for first, rest in endings.items())
