# ruff: noqa: E501, RUF001 (words of other languages use letters that look Latin)
"""What mail programs write, in many languages, above a quoted or forwarded mail and below a reply."""


def _words(*lines: str) -> tuple[str, ...]:
    """The words of each line, which "|" divides."""
    return tuple(dict.fromkeys(word.strip() for line in lines for word in line.split("|")))


# "On Monday, Ann wrote:" by how it begins, when it may be wrapped or have no address in it.
_FIRST_WORDS = _words(
    "on | am | le | el | em | il | op | den | dne | dnia | w dniu | w | pe | ma | på | a | в | у | la | în | vào | vào lúc",
    "pada | pada tanggal | ngày | στις | на | il giorno | in data | no dia | el día | tarihinde | date | mån | tir | noong | mnamo",
    "monday | tuesday | wednesday | thursday | friday | saturday | sunday | mon | tue | wed | thu | fri | sat | sun",
    "понедельник | вторник | среда | четверг | пятница | суббота | воскресенье | пн | вт | ср | чт | пт | сб | вс | нд",
    "понеділок | вівторок | середа | четвер | п’ятниця | субота | неділя | pon. | wt. | śr. | czw. | pt. | sob. | niedz.",
    "في | يوم | در | در تاریخ | बुध | सोम | মঙ্গল | সোম | เมื่อ | ในวันที่ | בתאריך | ב- | ב-יום | po | út | st | čt | pá | so | ne",
)
_DAYS = _words(
    "mon | tue | wed | thu | fri | sat | sun | monday | tuesday | wednesday | thursday | friday | saturday | sunday | понедельник",
    "вторник | среда | четверг | пятница | суббота | воскресенье | пн | вт | ср | чт | пт | сб | вс | सोम | সোম",
)
HEAD_STARTS = (
    *(f"{word} " for word in _FIRST_WORDS),
    *(f"{day}," for day in _DAYS),
    *("-----", "在", "于", "em\u00a0", "le\u00a0"),
)
# The verb, with which most heads end before their colon.
WROTE = _words(
    "wrote | writes | has written | sent | schrieb | geschrieben | schrieb folgendes | a écrit | écrivait | écrit | escribió | escribio",
    "ha escrito | escribía | ha scritto | scrive | scriveva | escreveu | escreve | schreef | schreef het volgende | heeft geschreven",
    "geschreven | skrev | skrev följande | skrev følgende | skriver | kirjoitti | napisał(a) | napisał | napisała | pisze | napsal(a)",
    "napsal | napsala | napísal(a) | napísal | írta | ezt írta | a scris | a scris următoarele | yazdı | şunu yazdı | şunları yazdı",
    "написал | написала | написал(а) | пишет | писал | писал(а) | написав | написала | написав(-ла) | написав(ла) | пише",
    "έγραψε | 写道 | 寫道 | 写到 | 書きました | さんが書きました | のメール | からのメール | 작성 | 작성했습니다 | 님이 작성 | đã viết | viết",
    "menulis | telah menulis | va escriure | ha escrit | كتب | كتبت | كتب ما يلي | نوشت | نوشته است | ने लिखा | लिखा | ने लिहिले | लिहिले",
    "লিখেছেন | লিখেছে | نے لکھا | لکھا | เขียนว่า | เขียน | כתב | כתבה | כתב/ה | sumulat | sinulat ni | aliandika | రాశారు | వ్రాసారు",
    "எழுதியது | எழுதினார்",
)
# The verb in front of the name: "Am 3.11. schrieb Ann:".
WROTE_BEFORE_NAME = tuple(f" {word} " for word in _words(
    "schrieb | schreef | skrev | écrivait | a écrit | escribió | ha scritto | escreveu | kirjoitti | написал | написала | пишет",
    "كتب | كتبت | wrote | ezt írta",
))  # fmt: skip

# The verb of a head that may stand on one line with the words above it.
WROTE_ON_THE_LINE = (
    " wrote:", " schrieb ", " a écrit", " escribió:", " escreveu:", " ha scritto:", " schreef ", " skrev ", " napisał",
    " kirjoitti:", " napsal",
)  # fmt: skip

# The fields of a copied head, by what they hold.
FROM = frozenset(_words(
    "from | von | de | da | van | från | fra | od | lähettäjä | от | от кого | від | від кого | gönderen | kimden | de la | feladó | από",
    "发件人 | 寄件者 | 寄件人 | 差出人 | 送信者 | 보낸 사람 | 보낸사람 | 发信人 | từ | người gửi | dari | daripada | pengirim | จาก | מאת | من | المرسل",
    "از | فرستنده | منجانب | प्रेषक | से | प्रेषक: | প্রেরক | থেকে | పంపినవారు | அனுப்புநர் | mula kay | kutoka | odosielateľ | odesílatel | remitente | mittente | afzender | expéditeur | absender",
))  # fmt: skip
SENT = frozenset(_words(
    "sent | gesendet | envoyé | envoyé le | enviado | enviado el | enviada | enviada em | enviado em | inviato | verzonden | skickat | sendt",
    "wysłano | wysłane | odesláno | odoslané | lähetetty | отправлено | надіслано | gönderildi | gönderme tarihi | trimis | küldve | elküldve",
    "στάλθηκε | 发送时间 | 傳送時間 | 寄件日期 | 發送時間 | 送信日時 | 보낸 날짜 | 보낸날짜 | đã gửi | dikirim | dihantar | ส่ง | ส่งเมื่อ | נשלח",
    "تم الإرسال | تاريخ الإرسال | ارسال شده | ارسال | بھیجا گیا | भेजा गया | पाठविले | পাঠানো হয়েছে | পাঠানো | ipinadala | imetumwa | enviat",
))  # fmt: skip
DATE = frozenset(_words(
    "date | datum | data | fecha | dato | päivämäärä | päiväys | дата | tarih | dată | dátum | ημερομηνία | 日期 | 时间 | 時間 | 日付 | 日時 | 날짜",
    "ngày | tanggal | tarikh | วันที่ | תאריך | التاريخ | تاريخ | تاریخ | दिनांक | तारीख | তারিখ | తేదీ | தேதி | petsa | tarehe | gönderilme",
))  # fmt: skip
TO = frozenset(_words(
    "to | an | à | para | a | aan | till | til | do | komu | vastaanottaja | кому | kime | alıcı | către | címzett | προς | 收件人 | 收件者 | 宛先",
    "받는 사람 | 받는사람 | đến | tới | người nhận | kepada | ke | ถึง | אל | إلى | الى | به | گیرنده | بنام | प्रति | को | प्राप्तकर्ता | প্রাপক | কে",
    "cc | kopie | copie | copia | cópia | kopia | копия | копія | bilgi | 抄送 | 副本 | 참조 | bcc | نسخة | kepada: | per a | kay | kwa | గ్రహీత | பெறுநர்",
))  # fmt: skip
SUBJECT = frozenset(_words(
    "subject | betreff | objet | asunto | assunto | oggetto | onderwerp | ämne | emne | temat | předmět | predmet | aihe | тема | konu",
    "subiect | tárgy | θέμα | 主题 | 主題 | 主旨 | 标题 | 件名 | 제목 | chủ đề | tiêu đề | subjek | perihal | subyek | tajuk | เรื่อง | หัวเรื่อง | נושא",
    "الموضوع | موضوع | विषय | বিষয় | విషయం | பொருள் | paksa | mada | assumpte | reply-to | importance",
))  # fmt: skip

# Words between dashes above a quoted mail, and above a forwarded one, whose text is not the sender's but is new.
ORIGINAL_WORDS = _words(
    "original message | original appointment | original e-mail | original email | ursprüngliche nachricht | originalnachricht",
    "original-nachricht | message d'origine | message d’origine | message original | message initial | mensaje original",
    "mensagem original | messaggio originale | oorspronkelijk bericht | origineel bericht | ursprungligt meddelande",
    "originalmeddelande | oprindelig meddelelse | original meddelelse | opprinnelig melding | alkuperäinen viesti",
    "wiadomość oryginalna | oryginalna wiadomość | původní zpráva | původní e-mail | pôvodná správa | eredeti üzenet",
    "mesaj original | mesajul original | αρχικό μήνυμα | исходное сообщение | оригинальное сообщение | исходное письмо",
    "початкове повідомлення | оригінальне повідомлення | özgün ileti | orijinal mesaj | orijinal ileti | thư gốc | tin nhắn gốc",
    "pesan asli | pesan asal | mesej asal | 原始邮件 | 回复的原邮件 | 原始郵件 | 原邮件 | 元のメッセージ | 原信 | original mail | 원본 메시지 | 원본 메일",
    "الرسالة الأصلية | رسالة أصلية | پیام اصلی | اصل پیغام | मूल संदेश | मूल मेसेज | মূল বার্তা | ข้อความต้นฉบับ | ข้อความเดิม | הודעה מקורית",
    "reply message | reply to message | antwort | respuesta original | missatge original | orihinal na mensahe",
)
FORWARD_WORDS = _words(
    "forwarded message | forwarded by | forwarded email | forward message | weitergeleitete nachricht | weitergeleitet von",
    "message transféré | message réexpédié | mensaje reenviado | mensagem encaminhada | mensagem reencaminhada",
    "messaggio inoltrato | doorgestuurd bericht | vidarebefordrat meddelande | videresendt meddelelse | videresendt melding",
    "edelleenlähetetty viesti | przekazana wiadomość | wiadomość przekazana | přeposlaná zpráva | preposlaná správa",
    "továbbított üzenet | mesaj redirecționat | προωθημένο μήνυμα | пересылаемое сообщение | пересылаемое письмо | пересланное сообщение",
    "переслане повідомлення | iletilen mesaj | yönlendirilen ileti | thư được chuyển tiếp | chuyển tiếp thư | pesan terusan",
    "pesan yang diteruskan | mesej yang dimajukan | 转发邮件 | 转发的邮件 | 转发邮件信息 | 轉寄郵件 | 已轉寄的郵件 | 転送メッセージ | 転送されたメッセージ",
    "전달된 메시지 | 전달 메시지 | رسالة محولة | رسالة معاد توجيهها | الرسالة المعاد توجيهها | پیام هدایت شده | پیام فوروارد شده",
    "آگے بھیجا گیا پیغام | अग्रेषित संदेश | फॉरवर्ड किया गया संदेश | ফরোয়ার্ড করা বার্তা | ข้อความที่ส่งต่อ | הודעה שהועברה | missatge reenviat",
)
FORWARD_HEADS = frozenset(_words(
    "begin forwarded message: | anfang der weitergeleiteten nachricht: | début du message réexpédié : | début du message transféré :",
    "début du message réexpédié: | début du message transféré: | inicio del mensaje reenviado: | inizio messaggio inoltrato:",
    "início da mensagem reencaminhada: | início da mensagem encaminhada: | begin doorgestuurd bericht: | vidarebefordrat brev:",
    "start på videresendt besked: | videresendt melding: | välitetty viesti alkaa: | początek przekazywanej wiadomości:",
    "začátek přeposílané zprávy: | začiatok preposlanej správy: | továbbított levél kezdete: | αρχή προωθημένου μηνύματος:",
    "начало переадресованного сообщения: | початок переадресованого повідомлення: | iletilmiş mesajın başlangıcı:",
    "bắt đầu thư được chuyển tiếp: | mulai pesan yang diteruskan: | 下面是被转发的邮件： | 下面是被转发的邮件: | 以下是轉寄的郵件： | 開始轉寄郵件：",
    "転送されたメール： | 転送されたメール: | 전달된 메시지: | بداية الرسالة المعاد توجيهها: | תחילת ההודעה שהועברה:",
))  # fmt: skip
# How the subject of a forwarded mail begins.
FORWARD_SUBJECTS = tuple(prefix + colon for prefix in _words(
    "fw | fwd | wg | tr | rv | enc | i | doorst | vb | vl | pd | pre | továbbítás | redir | прд | пересл | fwd(2) | fs | 转发 | 轉寄 | 転送 | 전달",
    "chuyển tiếp | trs | ilt | إعادة توجيه | fwrd | doorgestuurd | weitergeleitet | r. fwd",
) for colon in (":", " :", "\uff1a"))  # fmt: skip

DEVICE_LINES = _words(
    "sent from my | sent from outlook | sent from mail for | sent from yahoo mail | sent from proton | sent with proton",
    "sent from gmail | sent from samsung | sent from aol | sent from a mobile | sent via | sent on the go | get outlook for",
    "get bluemail for | von meinem | von unterwegs | gesendet von | gesendet mit | outlook für | holen sie sich outlook | hol dir outlook",
    "envoyé de mon | envoyé depuis | envoyé à partir | envoyé avec | télécharger outlook | obtenez outlook | provenance : courrier",
    "enviado desde | enviado do | enviado de | enviado via | enviado a partir | enviado con | obtener outlook | obter o outlook",
    "baixe o outlook | inviato da | inviato con | scarica outlook | ottieni outlook | verzonden vanaf | verstuurd vanaf | verstuurd met",
    "verzonden met | outlook voor | download outlook | skickat från | skickades från | hämta outlook | sendt fra | hent outlook",
    "lähetetty | hanki outlook | wysłane z | wysłano z | pobierz aplikację outlook | odesláno z | odesláno pomocí | odoslané z | získat outlook",
    "elküldve | iphone-ról küldve | trimis de pe | trimis din | στάλθηκε από | отправлено с | отправлено из | отправлено через",
    "надіслано з | надіслано від | iphone'umdan | iphone’umdan | android için outlook | ios için outlook | gönderen: posta | telefonumdan",
    "đã gửi từ | gửi từ | tải outlook | dikirim dari | dihantar daripada | dapatkan outlook | 发自我的 | 从我的 | 来自我的 | 發自我的 | 從我的",
    "获取 outlook | 取得 outlook | iphoneから送信 | androidから送信 | ipadから送信 | outlook for ios を入手 | outlook を入手 | 나의 iphone에서",
    "내 iphone에서 | iphone에서 보냄 | outlook 다운로드 | أرسلت من | مرسل من | تم الإرسال من | احصل على outlook | ارسال شده از | فرستاده شده از",
    "میرے آئی فون سے | मेरे iphone से भेजा | मेरे आईफ़ोन से | আমার iphone থেকে | ส่งจาก | נשלח מ | enviat des | ipinadala mula",
)
# What stands in the footer of a mailing list, below a rule.
LIST_WORDS = _words(
    "mailing list | mailing-list | mailinglist | unsubscribe | subscribed to | subscription | listinfo | sponsored by | groups.io",
    "yahoo! groups | google groups | list archives | mailman | list address | verteiler | abmelden | abbestellen | mailingliste",
    "liste de diffusion | se désabonner | désinscrire | désinscription | lista de correo | lista de distribución | darse de baja",
    "cancelar suscripción | lista de discussão | lista de e-mail | descadastrar | cancelar inscrição | lista di discussione",
    "annulla l'iscrizione | disiscri | maillijst | afmelden | uitschrijven | e-postlista | avregistrera | lista dyskusyjna | wypisz",
    "konference | odhlásit | список рассылки | отписаться | рассылк | відписатися | e-posta listesi | listesinden ayrıl | abonelikten",
    "danh sách thư | hủy đăng ký | milis | berhenti berlangganan | 邮件列表 | 退订 | 郵件論壇 | 取消訂閱 | メーリングリスト | 配信停止 | 메일링 리스트",
    "수신거부 | 구독 | القائمة البريدية | إلغاء الاشتراك | لیست پستی | لغو اشتراک | मेलिंग सूची | মেইলিং তালিকা | รายชื่ออีเมล | רשימת תפוצה",
)
# Lines that begin such a footer without a rule above.
LIST_LINES = _words(
    "to unsubscribe from this | to unsubscribe, e-mail | to unsubscribe, email | to unsubscribe send | to unsubscribe, send",
    "to unsubscribe: | you received this message because you are subscribed | you are receiving this because you are subscribed",
    "you are receiving this because you | reply to this email directly or view it on | reply to this email directly, view it on",
    "unsubscribe from this list: | um sich aus dieser gruppe abzumelden | sie erhalten diese nachricht, weil sie",
    "vous recevez ce message, car vous êtes abonné | vous recevez ce message car vous êtes abonné | has recibido este mensaje porque estás suscrito",
    "você recebeu essa mensagem porque está inscrito | você recebeu esta mensagem porque está inscrito | hai ricevuto questo messaggio perché sei iscritto",
    "je hebt dit bericht ontvangen omdat je bent geabonneerd | вы получили это сообщение, поскольку подписаны | для отмены подписки",
    "otrzymujesz tę wiadomość, ponieważ subskrybujesz | bu iletiyi | bạn nhận được thư này vì bạn đã đăng ký | anda menerima pesan ini karena",
    "您收到此邮件是因为您订阅了 | 您之所以收到这封邮件 | このメールは google グループのグループ | 이 메일은 google 그룹스",
    "لقد تلقيت هذه الرسالة لأنك مشترك",
    # of a help desk
    "##- please type your reply above this line | please type your reply above this line | please reply above this line",
    "##- bitte geben sie ihre antwort oberhalb dieser zeile ein | ##- veuillez saisir votre réponse au-dessus de cette ligne",
)
