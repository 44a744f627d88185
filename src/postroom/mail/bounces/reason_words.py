# ruff: noqa: RUF001 (words of other languages use letters that look Latin)
"""The words for a reason, in many languages: no such address, a full mailbox, a policy, a passing fault."""

import re
from functools import cache

from msgspec import Struct

from postroom.mail.languages.patterns import by_first_letter

_NO_SUCH_ADDRESS_ENGLISH = (
    r"\b(?:(?:user|recipient|mailbox|address|account|addressee|alias|domain|host|login|customer|subscriber"
    r"|name)"
    r"(?:s|\(s\))?(?: name)?(?: [\w'-]+){0,3}"
    r" (?:unknown|not found|not exist|doesn't exist|not listed|disabled|inactive|no longer|closed"
    r"|deactivated|invalid|not valid|not known|not recogni[sz]ed|terminated|deleted|archived"
    r"|could ?n.t be found|was not found|cannot be found|wasn't found|was not found|isn't valid)"
    r"|(?:unknown|no such|invalid|non-?existent|nonexist|unrouteable|unroutable|undeliverable|bad|inactive"
    r"|no valid|not a valid|not a known|disabled|cancelled|no local)"
    r"(?: \w+){0,2} (?:user|user ?id|recipients?"
    r"|mailbox|mailboxes|address|account|person|domain|hosts?|names?"
    r"|addressee"
    r"|destination|alias|people|mail drop|local part|login)"
    r"|(?:does not|doesn't|do not) (?:exist|have an?(?: \w+)? account)|no mailbox (?:here|by that name)"
    r"|tried to reach is (?:inactive|disabled)"
    r"|not our customer|not known (?:here|at this)"
    r"|no longer (?:with|works|at|valid|in use)"
    r"|not (?:listed )?in (?:the )?(?:public name & address book|domino directory|directory)"
    r"|recipnotfound|resolver\.adr\.\w{3,40}|nosuchuser|no account by that name|not a user here"
    r"|nxdomain|user unknown|unknown user|userunknown"
    r"|not associated with a mailbox|(?:couldn't|could not) find (?:the )?(?:mailbox|recipient|user|address)"
    r"|no mx (?:record )?or a record|can't find (?:any|a) host named|no such domain"
    r"|(?:name or )?host (?:name )?lookup failed permanently)\b"
)
# Said of unknown users and of refusals alike; with a link below it, it is a refusal.
_MAILBOX_NAMED = (
    r"(?:user|mailbox|address|account) (?:is )?unavailable|^[#\d\s:.-]{0,30}address rejected\b"
    r"|recipient (?:address )?rejected"
)
_DIRECTORY_BLOCKED = re.compile(r"recipient address rejected: access denied", re.I)
_DIRECTORY_STATUS = "5.4.1"  # how Exchange Online tells of an address that its directory does not have

# "may not exist, or you may not have permission": nobody can tell which.
_EITHER = re.compile(
    r"\b(?:not exist|unknown|not found|invalid|inactive|disabled|unavailable|no longer valid)"
    r"[^.;]{0,40}\bor\b[^.;]{0,60}\b(?:permissions?|authori[sz]ed|allowed|accept(?:s|ing)?|blocked|block"
    r"|polic(?:y|ies)|restricted|rejected|refused|full|quota|privileges?|rights?|spam)\b"
    r"|\b(?:permissions?|authori[sz]ed|allowed|accept(?:s|ing)?|blocked|restricted|rejected|full|quota|rights?)"
    r"[^.;]{0,40}\bor\b[^.;]{0,60}\b(?:not exist|unknown|not found|invalid|inactive|disabled)\b",
    re.I,
)

_SENDER_ENGLISH = (
    r"\b(?:sender|senders|originator|return[- ]?path|reverse[- ]?path|helo|ehlo|client host|connecting host"
    r"|(?:mail|envelope|header|message|rfc532[12])[- ]?from|from[ -](?:address|domain|header|field)"
    r"|(?:after|in reply to|in response to)(?: the)? (?:mail|helo|ehlo|starttls|auth)\b"
    r"|your (?:ip|host|server|domain|address|account|network|mail server)"
    r"|(?:invalid|missing|bad|forged) from|from (?:is )?(?:invalid|missing|forged)|domain of (?:the )?sender"
    r"|sending (?:domain|host|server|ip|mta))\b|\bfrom:|<from>"
)
_SENDER_ELSEWHERE = (
    "absender", "afzender", "avsändar", "afsender", "avsender", "lähettäjä", "expéditeur", "remitente",
    "mittente", "remetente", "expeditor", "nadawc", "odesílatel", "odosielateľ", "отправител", "відправник",
    "подател", "feladó", "αποστολέα", "gönderen", "发件人", "寄件者", "寄件人", "发信人", "発信者", "送信者",
    "差出人", "발신자", "보낸 사람", "người gửi", "pengirim", "ผู้ส่ง", "השולח", "المرسل", "فرستنده",
)  # fmt: skip

_NO_SUCH_ADDRESS_ELSEWHERE = (
    # German, Dutch, the north
    "unbekannter empfänger", "empfänger unbekannt", "empfänger ist unbekannt", "benutzer unbekannt",
    "unbekannter benutzer", "adresse existiert nicht", "adresse ist unbekannt", "existiert nicht",
    "nicht gefunden werden", "empfänger nicht gefunden", "postfach existiert", "nicht bekannt",
    "konto ist deaktiviert", "gebruiker onbekend", "onbekende gebruiker", "onbekende ontvanger",
    "bestaat niet", "niet gevonden", "finns inte", "okänd användare", "okänd mottagare", "hittades inte",
    "kunde inte hittas", "findes ikke", "ukendt modtager", "ukendt bruger", "blev ikke fundet",
    "finnes ikke", "ukjent mottaker", "ukjent bruker", "ble ikke funnet", "ei löydy", "ei ole olemassa",
    "tuntematon vastaanottaja", "tuntematon käyttäjä", "ei löytynyt",
    # Romance
    "utilisateur inconnu", "destinataire inconnu", "adresse inconnue", "n'existe pas", "n’existe pas",
    "introuvable", "n'a pas été trouvée", "destinataire invalide", "adresse invalide", "boite desactivee",
    "boîte désactivée", "boite du destinataire archivee", "compte désactivé", "n'est plus valide",
    "usuario desconocido", "destinatario desconocido", "no existe", "no se encontró", "no se ha encontrado",
    "dirección incorrecta", "dirección no válida", "cuenta deshabilitada", "usuario inexistente",
    "utente sconosciuto", "destinatario sconosciuto", "non esiste", "inesistente", "non trovato",
    "non è stato trovato", "utente non valido", "non valido", "usuário desconhecido", "usuário inexistente",
    "destinatário desconhecido", "não existe", "nao existe", "não foi encontrado", "não encontrado",
    "conta inativa", "utilizador desconhecido", "utilizator necunoscut", "nu există", "nu exista",
    "adresă inexistentă",
    # Slavic, Baltic, Hungarian, Greek, Turkish
    "nieznany użytkownik", "użytkownik nieznany", "nie ma takiego użytkownika", "nie ma takiego adresu",
    "böyle bir kullanıcı yok", "böyle bir adres yok", "nu este un utilizator", "takový uživatel není",
    "nie istnieje", "nieznany odbiorca", "nie znaleziono",
    "neznámý uživatel", "uživatel neexistuje", "neexistuje", "neznámy používateľ", "nebyl nalezen",
    "nebola nájdená", "neznámý příjemce", "ne obstaja", "ne postoji", "nepoznat korisnik",
    "nepoznati korisnik", "nepostojeć", "пользователь не найден", "пользователь неизвестен",
    "неизвестный пользователь", "не существует", "адрес не найден", "нет такого пользователя",
    "ящик не найден", "получатель не найден", "адресат не найден", "неверный адрес", "несуществующ",
    "не найден", "не існує", "не знайдено", "користувача не знайдено", "не съществува",
    "непознат потребител", "ismeretlen felhasználó", "ismeretlen címzett", "nem létezik", "nem található",
    "δεν υπάρχει", "άγνωστος χρήστης", "άγνωστος παραλήπτης", "δεν βρέθηκε", "kullanıcı bulunamadı",
    "bilinmeyen kullanıcı", "mevcut değil", "bulunamadı", "geçersiz alıcı", "nežinomas vartotojas",
    "neegzistuoja", "neeksistē", "ei eksisteeri",
    # Asia, Hebrew, Arabic, Persian
    "用户不存在", "收件人不存在", "邮箱不存在", "帐号不存在", "账号不存在", "邮件地址不存在", "地址不存在",
    "不存在", "找不到收件人", "找不到邮箱", "无此用户", "没有此用户", "查无此", "無此使用者", "使用者不存在",
    "收件者不存在", "信箱不存在", "帳號不存在", "找不到", "查無此", "域名不存在", "存在しません",
    "存在しない", "宛先不明", "ユーザーが見つかりません", "見つかりません", "見つかりませんでした",
    "宛先が不明", "宛先不正", "使われておりません", "使用されていません", "アドレスが間違", "존재하지 않는",
    "존재하지 않습니다", "없는 사용자", "없는 계정", "찾을 수 없습니다", "알 수 없는 수신자", "휴면",
    "không tồn tại", "không tìm thấy", "tidak ditemukan", "tidak ada", "tidak dikenal", "tidak wujud",
    "ไม่พบผู้รับ", "ไม่มีอยู่", "ไม่พบ", "אינו קיים", "לא קיים", "לא קיימת", "לא נמצא", "משתמש לא ידוע",
    "غير موجود", "لا يوجد", "لم يتم العثور", "غير معروف", "مستخدم مجهول", "وجود ندارد", "यह पता मौजूद नहीं",
    "मौजूद नहीं",
)  # fmt: skip

_FULL_ENGLISH = (
    r"\b(?:over ?-?quota|quota|(?:mailbox|inbox|mail ?box|account|folder|disk|mail drop)(?: \w+){0,2} full"
    r"|storage"
    r"|mailfull|quotaexceeded|out of (?:space|storage)|insufficient (?:disk|space|system storage)"
    r"|mailbox size"
    r"|exceeded (?:its|the|their) (?:mailbox|disk|space))\b"
)
_FULL_ELSEWHERE = (
    "postfach ist voll", "postfach voll", "postfach des empfängers ist voll", "speicherplatz", "kontingent",
    "postvak is vol", "mailbox is vol", "postvak vol", "brevlådan är full", "är full", "er fuld", "er full",
    "on täynnä", "täynnä", "pleine", "saturée", "buzón lleno", "está lleno", "cuota", "casella piena",
    "è piena", "piena", "cheia", "está cheia", "cota excedida", "plină", "pełna", "przepełniona",
    "przekroczon", "je plná", "plná", "přeplněn", "переполнен", "превышена квота", "превышен", "переповнен",
    "пълна", "megtelt", "betelt", "γεμάτο", "πλήρες", "dolu", "kotası", "kota", "已满", "已滿", "空间不足",
    "容量不足", "超出配额", "容量超過", "容量オーバー", "容量を超", "いっぱい", "一杯", "용량 초과",
    "용량이 초과", "용량초과", "가득", "đã đầy", "hết dung lượng", "penuh", "เต็ม", "מלאה", "מלא", "ممتلئ",
    "تجاوز الحصة", "پر است", "भरा हुआ", "भर गया",
)  # fmt: skip

_POLICY_ENGLISH = (
    r"\b(?:spam\w*|virus|malware|polic(?:y|ies)|block(?:ed|list|listed|ing)?|black ?list(?:ed)?|dnsbl|rbl"
    r"|reputation"
    r"|banned|spf|dkim|dmarc|relay(?:ing)?(?! recipient)|grey ?list(?:ed|ing)?|rate|too many|authentication"
    r"|authenticated"
    r"|content"
    r"|sender|permission|unsolicited|attachment|too (?:large|big)|size limit|message size|prohibited"
    r"|not accepting mail from"
    r"|not authori[sz]ed|(?:not a|only|not) members?|members only|not subscribed|moderat\w+"
    r"|restricted|denied by|phishing|helo|ehlo|invalid dns|ptr|rdns|reverse dns"
    r"|your (?:ip|host|server|domain|address|account|network)|client host)\b"
)
_POLICY_ELSEWHERE = (
    "blockiert", "gesperrt", "zu groß", "richtlinie", "absender", "geblokkeerd", "te groot", "afzender",
    "blockerad", "spärrad", "för stort", "blokeret", "blokkert", "estetty", "bloqué", "indésirable",
    "trop volumineux", "politique", "expéditeur", "bloqueado", "bloqueada", "no deseado", "demasiado grande",
    "política", "remitente", "bloccato", "troppo grande", "mittente", "muito grande", "remetente", "blocat",
    "zablokowan", "nadawc", "zablokován", "odesílatel", "заблокирован", "спам", "отправител",
    "слишком больш", "відправник", "letiltva", "εμπλοκή", "engellen", "gönderen", "垃圾邮件", "垃圾郵件",
    "被拒收", "拒收", "黑名单", "黑名單", "超过大小", "発信者", "迷惑メール", "受信拒否", "拒否", "送信者",
    "スパム", "サイズ", "스팸", "차단", "수신거부", "수신 거부", "bị chặn", "thư rác", "diblokir", "חסום",
    "דואר זבל", "محظور", "مسدود",
)  # fmt: skip

_PASSING_ENGLISH = (
    r"\b(?:temporar(?:y|ily)|try(?:ing)? again|timed ?out|time-?out|(?:message|delivery time|retry"
    r"|queue)(?: \w+){0,2} expired"
    r"|retry time(?:out)?|retry timeout exceeded|connection (?:refused|dropped|lost|reset)|(?:could"
    r"|can) ?not connect"
    r"|(?:could not|couldn't|unable to|cannot|can't) (?:connect|establish)|no route to host"
    r"|network is unreachable"
    r"|in the queue too long|too long|undelivered after|not responding|greylisted"
    r"|for \d{1,3} (?:hours?|days?)|service unavailable|insufficient system resources)\b"
)
_PASSING_ELSEWHERE = (
    "vorübergehend", "zeitüberschreitung", "nicht erreichbar", "tijdelijk", "tillfällig", "midlertidig",
    "temporaire", "expiré", "délai", "injoignable", "temporal", "caducado", "temporane", "scadut",
    "temporári", "expirou", "tymczasow", "dočasn", "временн", "истек", "тимчасов", "ideiglenes", "προσωριν",
    "geçici", "暂时", "超时", "暫時", "逾時", "一時的", "タイムアウト", "일시적", "시간 초과", "tạm thời",
    "sementara", "זמני", "مؤقت",
)  # fmt: skip


class Words(Struct, frozen=True):
    """Looked for in lower case: a search that ignores case is several times slower."""

    english: str
    elsewhere: tuple[str, ...]

    def are_in(self, text: str) -> bool:
        lower = text.lower()
        return any(pattern.search(lower) is not None for pattern in _patterns(self))


@cache
def _patterns(words: Words) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(words.english), re.compile(by_first_letter(words.elsewhere))


def says_either(words: str) -> bool:
    """Whether it gives two reasons and leaves open which one it was."""
    return _EITHER.search(words) is not None


def names_mailbox(words: str, status: str) -> bool:
    """Whether it says no more than that this mailbox is not to be had."""
    if _DIRECTORY_BLOCKED.search(words):
        return status == _DIRECTORY_STATUS
    return _MAILBOX.search(words.lower()) is not None


_MAILBOX = re.compile(_MAILBOX_NAMED)
SENDER = Words(_SENDER_ENGLISH, _SENDER_ELSEWHERE)
NO_SUCH_ADDRESS = Words(_NO_SUCH_ADDRESS_ENGLISH, _NO_SUCH_ADDRESS_ELSEWHERE)
FULL = Words(_FULL_ENGLISH, _FULL_ELSEWHERE)
POLICY = Words(_POLICY_ENGLISH, _POLICY_ELSEWHERE)
PASSING = Words(_PASSING_ENGLISH, _PASSING_ELSEWHERE)
