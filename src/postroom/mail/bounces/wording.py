# ruff: noqa: RUF001 (words of other languages use letters that look Latin)
"""How servers say that a mail did not arrive, or not yet, by family and by language; all in lower case."""

from collections.abc import Iterable

FAILURE: dict[str, tuple[str, ...]] = {
    "qmail and relatives": (
        "hi. this is the", "failure notice", "i'm afraid i wasn't able to deliver",
        "this is a permanent error", "i've given up", "i was unable to deliver", "i wasn't able to deliver",
        "this is the mail delivery agent", "unable to deliver your message to the following",
        "sorry it didn't work out",
    ),
    "postfix": (
        "could not be delivered to one or more", "i'm sorry to have to inform you",
        "undelivered mail returned",
    ),
    "exim": (
        "could not be delivered to all of its", "could not be delivered to one or more of its",
        "mail delivery failed",
    ),
    "sendmail": (
        "had permanent fatal errors", "transcript of session follows", "returned mail:",
        "had delivery problems", "permanent fatal errors", "message could not be delivered for",
        "the original message was received at",
    ),
    "exchange": (
        "did not reach the following recipient", "did not reach some or all",
        "delivery has failed to these recipients", "could not be reached", "couldn't be delivered to",
        "undeliverable:", "wasn't delivered to", "delivery failed",
        "the following recipients could not be reached",
        "delivery to these recipients or groups is complete, but no delivery", "couldn't be delivered",
    ),
    "domino": (
        "delivery failure:", "delivery failure report", "was not delivered because", "was not delivered to",
    ),
    "webmail": (
        "address not found", "message not delivered", "message blocked", "recipient inbox full",
        "message bounced", "delivery to the following recipient failed",
        "delivery status notification (failure)", "wasn't delivered", "was unable to deliver your message",
        "this message was created automatically by mail delivery software",
    ),
    "gateways and others": (
        "could not be delivered", "could not deliver", "cannot be delivered", "couldn't deliver",
        "can not be delivered", "can't be delivered", "was not delivered", "has not been delivered",
        "not been delivered", "unable to deliver", "undeliverable", "undelivered", "delivery failure",
        "delivery failed", "failed to deliver", "failed delivery", "delivery error", "delivery problem",
        "non-delivery", "nondelivery", "non delivery", "returned to sender", "mail could not be sent",
        "message failed", "failed message", "mail failure", "rejected your message", "was rejected",
        "returned mail", "message delivery has failed", "delivery has failed", "bounced", "did not reach",
        "was undeliverable", "failed permanently", "refused by", "message rejected", "not able to deliver",
        "has been rejected", "has been returned", "failed recipient", "failed address", "user unknown",
        "unknown user", "unknown recipient", "delivery unsuccessful", "message was not sent", "was returned",
        "delivery to the following", "message undeliver", "mail system error", "failure delivering",
        "failure delivery", "not able to send", "unable to send", "could not send", "failed mail",
        "could not be sent", "problem with its delivery",
    ),
    "German": (
        "unzustellbar", "nicht zugestellt", "zustellung fehlgeschlagen", "konnte nicht an",
        "nicht ausgeliefert", "unzustellbare", "fehler bei der zustellung", "zustellfehler",
        "zustellung ist fehlgeschlagen", "fehlgeschlagen", "nicht erreicht", "nicht übermittelt",
        "rücksendung", "nicht übermittelt werden",
    ),
    "French": (
        "non remis", "n'a pas pu être remis", "n’a pas pu être remis", "échec de la remise",
        "échec de remise", "non distribu", "n'a pas pu être distribu", "n'a pas été remis",
        "échec de distribution", "échec de la livraison", "n'a pu être", "n'a pas pu être livré",
        "n'a pas pu être délivré", "impossible de remettre", "échec d'envoi", "retour de courrier",
        "n'a pas pu être transmis", "n'a pas atteint", "n’a pas été remis",
    ),
    "Spanish": (
        "no se pudo entregar", "no se ha podido entregar", "no ha podido ser entregado", "no entregado",
        "no pudo ser entregado", "error en la entrega", "error al entregar", "entrega fallida",
        "no se entregó", "no se puede entregar", "no ha podido entregarse", "mensaje devuelto",
        "fallo en la entrega", "error de entrega", "no se ha entregado", "no llegó a",
        "no es posible entregar",
    ),
    "Italian": (
        "non è stato recapitato", "impossibile recapitare", "mancato recapito", "non recapitabile",
        "recapito non riuscito", "non è stato possibile recapitare", "non consegnato", "mancata consegna",
        "non è stato consegnato", "impossibile consegnare", "errore di consegna", "non recapitato",
        "non può essere recapitato",
    ),
    "Portuguese": (
        "não foi possível entregar", "não pôde ser entregue", "falha na entrega", "não entregue",
        "não foi entregue", "não pode ser entregue", "nao pode ser entregue", "erro na entrega",
        "não entregável", "falha de entrega", "mensagem devolvida", "não foi possível enviar",
    ),
    "Dutch": (
        "niet worden bezorgd", "niet bezorgd", "onbestelbaar", "niet afgeleverd",
        "kon niet worden afgeleverd", "bezorging mislukt", "aflevering mislukt", "niet worden afgeleverd",
        "kan niet worden bezorgd",
    ),
    "Nordic": (
        "kunde inte levereras", "kunde inte leverera", "gick inte att leverera", "inte levererats",
        "olevererbar", "oleverer", "kunne ikke leveres", "ikke leveret", "ikke leverbar", "ikke levert",
        "kunne ikke levere", "uleveret", "ulever", "kan ikke leveres", "toimittaminen epäonnistui",
        "ei voitu toimittaa", "ei voi toimittaa", "toimitus epäonnistui", "toimittamatta", "ekki tókst",
        "leverans misslyckades",
    ),
    "Polish, Czech, Slovak": (
        "nie można dostarczyć", "nie mogła zostać dostarczona", "niedostarczona", "nie została dostarczona",
        "nie dostarczono", "nie może być dostarczona", "nie udało się dostarczyć", "niedostarczenie",
        "zwrot wiadomości", "nie powiodło", "nelze doručit", "nebyla doručena", "nedoručitelná",
        "nemohla být doručena", "nedoručen", "se nepodařilo doručit", "nebolo možné doručiť",
        "nedoručiteľná", "nemožno doručiť",
    ),
    "Russian and neighbours": (
        "не доставлено", "не может быть доставлено", "не удалось доставить", "не было доставлено",
        "невозможно доставить", "недоставленное", "не удается доставить", "ошибка доставки",
        "не смогли доставить", "не может доставить", "не доставлено получател", "недоставк",
        "не вдалося доставити", "не доставлено", "неможливо доставити", "не може да бъде доставено",
        "не беше доставено", "неуспешна доставка", "възникна грешка при доставката",
    ),
    "Balkan, Romanian, Hungarian, Greek, Turkish, Baltic": (
        "nu a putut fi livrat", "nu a fost livrat", "nelivrat", "nu s-a putut livra", "nem kézbesíthető",
        "nem sikerült kézbesíteni", "kézbesítés sikertelen", "sikertelen kézbesítés", "kézbesítési hiba",
        "δεν παραδόθηκε", "δεν ήταν δυνατή η παράδοση", "αδυναμία παράδοσης", "η παράδοση απέτυχε",
        "μη παραδοτέο", "teslim edilemedi", "iletilemedi", "gönderilemedi", "teslim edilemiyor",
        "ulaştırılamadı", "nije isporučena", "nije moguće isporučiti", "ne može biti isporučen",
        "nije bilo moguće isporučiti", "ni bilo mogoče dostaviti", "nepavyko pristatyti", "nepristatyt",
        "neizdevās piegādāt", "edastamine ebaõnnestus", "ei õnnestunud",
    ),
    "Chinese": (
        "退信", "无法投递", "無法投遞", "未送达", "未送達", "无法送达", "無法送達", "投递失败", "投遞失敗",
        "发送失败", "傳送失敗", "没有送达", "无法发送", "未能送达", "未能投递", "被退回", "无法传递",
        "無法傳遞", "传递失败", "傳遞失敗", "退回",
    ),
    "Japanese": (
        "配信できません", "配信不能", "送信できません", "届けることができません", "届けられません",
        "お届けできません", "配信に失敗", "配信されません", "送信に失敗", "未配信", "配達できません",
        "送信エラー", "配信エラー", "送信できなかった", "配送できません", "不達", "届きません",
    ),
    "Korean": (
        "전달할 수 없", "배달되지", "전송되지", "발송 실패", "전송 실패", "반송", "배달할 수 없", "전달되지",
        "보내지 못했", "전송에 실패", "발송에 실패", "배달 실패", "전달하지 못",
    ),
    "South-east Asia": (
        "không thể gửi", "không gửi được", "không thể chuyển", "chưa được gửi", "gửi không thành công",
        "tidak dapat dikirim", "gagal terkirim", "tidak terkirim", "gagal dikirim", "pengiriman gagal",
        "tidak dapat dihantar", "ไม่สามารถส่ง", "ส่งไม่สำเร็จ", "ส่งไม่ถึง", "hindi naihatid",
    ),
    "Hebrew, Arabic, Persian, Hindi": (
        "לא נמסרה", "לא ניתן למסור", "לא הגיעה", "מסירה נכשלה", "לא נמסר", "לא ניתן להעביר",
        "לא היתה אפשרות להעביר", "تعذر تسليم", "لم يتم تسليم", "فشل تسليم", "فشل التسليم", "تعذّر تسليم",
        "غير قابلة للتسليم", "تحویل داده نشد", "تحویل ناموفق", "वितरित नहीं", "डिलीवर नहीं", "नहीं पहुंच",
    ),
}  # fmt: skip

# Said only of mail that is still being tried.
DELAY = (
    "warning message only", "this is a warning message", "will keep trying", "will be retried",
    "still being attempted", "do not need to resend", "not need to resend",
    "no action is required on your part", "still trying", "has been delayed",
    "delivery attempts will continue", "will continue to try", "is delayed", "delivery delayed:",
    "delivery is delayed", "will retry for", "will retry", "continue trying to deliver",
    "could not send message for past", "status notification (delay)", "delivery incomplete",
    "hasn't been delivered yet", "not been delivered yet", "not yet been delivered",
    "delayed mail (still being retried)", "delivery will continue to be attempted", "will continue until",
    "keep trying", "message delayed", "will try again for", "the server will try", "verzögert",
    "zustellversuche werden fortgesetzt", "wird weiterhin versucht", "weitere zustellversuche", "retardé",
    "sera retentée", "de nouvelles tentatives", "nouvelles tentatives", "retrasad", "se seguirá intentando",
    "seguirá intentando", "ritardat", "ulteriori tentativi", "in ritardo", "atrasad", "continuará tentando",
    "novas tentativas", "vertraagd", "försenad", "försenats", "forsinket", "viivästyn", "opóźnion",
    "zpožděn", "задерж", "попытки доставки будут", "будут продолжены", "затрим", "késik", "gecik", "延迟",
    "延遲", "仍会继续", "将继续尝试", "將繼續嘗試", "遅延", "再試行", "再送を試み", "지연", "다시 시도",
    "tertunda", "trì hoãn", "מתעכב", "تأخر",
)  # fmt: skip

# Said only of mail that has been given up, whatever delay went before.
GIVEN_UP = (
    "giving up on", "i've given up", "have given up", "gave up", "will not be retried",
    "no further attempts", "will be deleted from queue", "permanent error", "permanent fatal",
    "permanent failure", "failed permanently", "has expired", "timeout exceeded", "time exceeded",
    "could not be delivered for", "aufgegeben", "endgültig fehlgeschlagen", "abandonné", "прекращены",
    "放弃", "放棄", "断念",
)  # fmt: skip

PHRASES = tuple(dict.fromkeys(phrase for phrases in FAILURE.values() for phrase in phrases))


def says_failure(text: str) -> bool:
    lower = text.lower()
    return any(phrase in lower for phrase in PHRASES)


def says_delay(subject: str, words: str) -> bool:
    """A delay report also tells what happens when the server gives up, so that its subject decides first."""
    if _first_place(DELAY, subject) <= min(_first_place(PHRASES, subject), len(subject) - 1):
        return True
    lower = "\n".join(line for line in words.split("\n") if not _is_echo(line, subject)).lower()
    return any(phrase in lower for phrase in DELAY) and not any(phrase in lower for phrase in GIVEN_UP)


def _first_place(phrases: Iterable[str], text: str) -> int:
    lower = text.lower()
    return min((lower.find(phrase) for phrase in phrases if phrase in lower), default=len(text))


def _is_echo(line: str, subject: str) -> bool:
    """Whether it repeats the subject of the returned mail, which may speak of any delay."""
    repeated = line.partition(":")[2].strip()
    return repeated != "" and repeated in subject
