# ruff: noqa: E501, RUF001 (words of other languages use letters that look Latin)
"""Words that name a one-time code, or something that is none, in the languages most mail is written in."""

import unicodedata


def _words(*lines: str) -> tuple[str, ...]:
    """The words of each line, which "|" divides; those with accents also as people write them without."""
    words = [word.strip() for line in lines for word in line.split("|")]
    return tuple(dict.fromkeys([*words, *map(_without_accents, words)]))


def _without_accents(word: str) -> str:
    if not any("\u00c0" <= letter <= "\u024f" or "\u1e00" <= letter <= "\u1eff" for letter in word):
        return word
    plain = unicodedata.normalize("NFD", word.replace("ł", "l").replace("đ", "d").replace("ı", "i"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


# These name a one-time code and hardly ever anything else.
CERTAIN = _words(
    # English
    "verification code | verification pin | verify code | security code | login code | log-in code | log in code",
    "sign-in code | signin code | sign in code | authentication code | authenticator code | authorization code",
    "authorisation code | one-time code | one time code | one-time passcode | one time passcode | one-time password",
    "one time password | one-time pin | one time pin | single-use code | single use code | two-factor code | 2fa code",
    "mfa code | 2-step code | two-step code | otp | otp code | otac | temporary code | temporary passcode",
    "temporary login code | temporary password | access code | account code | recovery code | reset code",
    "password reset code | confirmation pin | email code | identity code | magic code | device code | auth code",
    "to confirm it's you | to confirm it’s you | to verify it's you | to verify it’s you | code to sign in | code to log in",
    "validation code | login pin | security pin | security passcode | login passcode",
    # Spanish
    "código de verificación | código de seguridad | código de acceso | código de inicio de sesión | clave de un solo uso",
    "código de autenticación | código de un solo uso | contraseña de un solo uso | código de validación | clave dinámica",
    "código para entrar | código para iniciar sesión | código para acceder | código para ingresar",
    "código temporal | código único | código de autorización | código de recuperación | contraseña temporal | token de acceso",
    # Portuguese
    "código de verificação | código de segurança | código de acesso | código de login | código de autenticação",
    "código de uso único | senha de uso único | senha temporária | código de validação | código único | código temporário",
    "código de autorização | código de recuperação | palavra-passe de utilização única | código de início de sessão",
    # French
    "code de vérification | code de sécurité | code de connexion | code d'accès | code d’accès | code à usage unique",
    "code d'authentification | code d’authentification | mot de passe à usage unique | code de validation | code unique",
    "code temporaire | mot de passe temporaire | code d'identification | code d’identification | code de sûreté",
    # Italian
    "codice di verifica | codice di sicurezza | codice di accesso | codice d'accesso | codice monouso | codice otp",
    "codice di autenticazione | password monouso | codice temporaneo | codice di convalida | codice usa e getta",
    "codice d’accesso | codice di autorizzazione | password temporanea",
    # German
    "verifizierungscode | verifikationscode | bestätigungscode | sicherheitscode | anmeldecode | einmalcode | login-code",
    "einmalpasswort | einmal-passwort | einmal-code | einmalkennwort | zugangscode | zugriffscode | freischaltcode",
    "authentifizierungscode | prüfcode | bestätigungs-code | sicherheits-code | einmal-pin | mtan | sms-tan",
    # Dutch
    "verificatiecode | beveiligingscode | inlogcode | eenmalige code | toegangscode | eenmalig wachtwoord | eenmalige pincode",
    "authenticatiecode | bevestigingscode | controlecode | aanmeldcode",
    # Swedish, Danish, Norwegian, Finnish
    "verifieringskod | säkerhetskod | inloggningskod | engångskod | engångslösenord | verifikationskode | bekräftelsekod",
    "sikkerhedskode | engangskode | loginkode | bekræftelseskode | bekreftelseskode | sikkerhetskode | engangspassord",
    "verifiseringskode | innloggingskode | påloggingskode | vahvistuskoodi | turvakoodi | kertakäyttökoodi | todennuskoodi",
    "kertakäyttökoodisi | vahvistuskoodisi | turvakoodisi | kirjautumiskoodisi | todennuskoodisi",
    "kertakäyttöinen koodi | kertakäyttöinen salasana | engangskodeord | kirjautumiskoodi",
    # Polish, Czech, Slovak
    "kod weryfikacyjny | kod bezpieczeństwa | kod logowania | kod jednorazowy | jednorazowy kod | hasło jednorazowe",
    "jednorazowe hasło | kod dostępu | kod uwierzytelniający | kod autoryzacyjny | ověřovací kód | bezpečnostní kód",
    "přihlašovací kód | jednorázový kód | jednorázové heslo | přístupový kód | overovací kód | bezpečnostný kód",
    "prihlasovací kód | kod do logowania | kod sms",
    # Hungarian, Romanian, Greek
    "ellenőrző kód | ellenőrző kódja | biztonsági kód | biztonsági kódja | egyszer használatos kód | hitelesítő kód",
    "bejelentkezési kód | megerősítő kód | cod de verificare | codul de verificare | codul tău de verificare | codul dvs. de verificare",
    "cod de securitate | codul de securitate | cod de acces | codul de autentificare | parolă unică | codul de acces",
    "κωδικός επαλήθευσης | κωδικός ασφαλείας | κωδικός μίας χρήσης | κωδικός μιας χρήσης | κωδικός σύνδεσης",
    # Russian, Ukrainian
    "код подтверждения | код проверки | код безопасности | код для входа | код входа | одноразовый код | одноразовый пароль",
    "проверочный код | код доступа | код авторизации | код верификации | временный пароль | код активации",
    "код подтверждения | кода подтверждения | секретный код | пароль для входа | код із смс | код из смс",
    "код підтвердження | код перевірки | код безпеки | код для входу | код входу | одноразовий код | одноразовий пароль",
    "код доступу | код авторизації | перевірочний код",
    # Turkish
    "doğrulama kodu | doğrulama kodunuz | güvenlik kodu | güvenlik kodunuz | onay kodu | onay kodunuz | giriş kodu",
    "giriş kodunuz | tek kullanımlık kod | tek kullanımlık şifre | tek kullanımlık şifreniz | tek kullanımlık parola",
    "tek kullanımlık kodunuz | aktivasyon kodu | erişim kodu | doğrulama şifresi | oturum açma kodu | oturum açma kodunuz",
    # Vietnamese
    "mã xác minh | mã xác thực | mã xác nhận | mã bảo mật | mã đăng nhập | mã otp | mật khẩu một lần | mã truy cập",
    "mã kích hoạt | mật khẩu dùng một lần",
    # Indonesian and Malay, Filipino, Swahili
    "kode verifikasi | kode keamanan | kode otp | kode masuk | kode akses | kata sandi sekali pakai | kode sekali pakai",
    "kode konfirmasi | kode otentikasi | kod pengesahan | kod keselamatan | kod akses | kode autentikasi",
    "verification code mo | code ng pag-verify | nambari ya kuthibitisha | msimbo wa uthibitishaji | nambari ya uthibitisho",
    # Catalan
    "codi de verificació | codi de seguretat | codi d'accés | codi d’un sol ús | codi d'un sol ús",
)
# The same, in languages that write without spaces or join endings to words.
CERTAIN_JOINED = _words(
    # Chinese, simplified and traditional
    "验证码 | 驗證碼 | 校验码 | 校驗碼 | 动态码 | 動態碼 | 动态密码 | 動態密碼 | 一次性密码 | 一次性密碼 | 安全码 | 安全碼 | 验证代码",
    "確認碼 | 确认码 | 登录码 | 登錄碼 | 登入碼 | 安全代码 | 安全代碼 | 驗證代碼 | 一次性代码 | 认证码 | 認證碼 | 短信码 | 授权码",
    "口令码 | 一次性验证 | 登录代码 | 登入代碼 | 驗證密碼",
    # Japanese
    "認証コード | 確認コード | 検証コード | セキュリティコード | セキュリティ コード | ログインコード | ワンタイムパスワード",
    "ワンタイムコード | 認証番号 | 確認番号 | ワンタイム パスワード | 本人確認コード | パスコード | アクセスコード | 認証キー",
    # Korean
    "인증번호 | 인증 번호 | 인증코드 | 인증 코드 | 확인코드 | 확인 코드 | 보안코드 | 보안 코드 | 로그인 코드 | 일회용 비밀번호",
    "일회용 코드 | 일회용 패스워드 | 확인번호 | 확인 번호 | 보안 번호 | 승인번호",
    # Hindi, Marathi
    "सत्यापन कोड | सुरक्षा कोड | ओटीपी | वन-टाइम पासवर्ड | वन टाइम पासवर्ड | लॉगिन कोड | पुष्टिकरण कोड | एक बार का कोड",
    "पडताळणी कोड | सत्यापन संकेतांक | वेरिफिकेशन कोड",
    # Bengali
    "যাচাইকরণ কোড | যাচাই কোড | নিরাপত্তা কোড | ওটিপি | ভেরিফিকেশন কোড | লগইন কোড",
    # Arabic, Persian, Urdu
    "رمز التحقق | كود التحقق | رمز الأمان | رمز الدخول | رمز تسجيل الدخول | كلمة مرور لمرة واحدة | رمز التأكيد | رمز التفعيل",
    "رمز المرور | رمز لمرة واحدة | الرمز السري | كود التفعيل | كلمة المرور لمرة واحدة | رمز المصادقة",
    "کد تأیید | کد تایید | کد امنیتی | کد ورود | رمز یکبار مصرف | رمز یک‌بار مصرف | کد احراز هویت | رمز پویا | کد فعال‌سازی",
    "تصدیقی کوڈ | سیکیورٹی کوڈ | سیکورٹی کوڈ | تصدیقی کوڈ | لاگ ان کوڈ | او ٹی پی",
    # Telugu, Tamil
    "ధృవీకరణ కోడ్ | వెరిఫికేషన్ కోడ్ | ధృవీకరణ సంకేతం | భద్రతా కోడ్ | ఓటీపీ",
    "சரிபார்ப்புக் குறியீடு | சரிபார்ப்பு குறியீடு | பாதுகாப்புக் குறியீடு | ஓடிபி | சரிபார்ப்பு குறியீட்டு",
    # Thai
    "รหัสยืนยัน | รหัสความปลอดภัย | รหัสการยืนยัน | รหัสผ่านแบบใช้ครั้งเดียว | รหัสผ่านครั้งเดียว | รหัส otp | รหัสเข้าสู่ระบบ | รหัสลงชื่อเข้าใช้",
    # Hebrew
    "קוד אימות | קוד האימות | קוד אבטחה | קוד כניסה | סיסמה חד פעמית | סיסמה חד-פעמית | קוד חד פעמי | קוד חד-פעמי | קוד הכניסה",
)
# These may name anything: what stands around them decides.
PLAIN = (
    "mã",  # only so: without its accent it is a word of many languages
    *_words(
        "code | codes | passcode | pin | tan | 2fa | mfa | kode | kod | kodu | koden | kodunuz | kodun | kód | kódja | kódod | koodi | koodisi",
        "codice | código | codi | cod | codul | confirmation code | activation code",
        "код | кода | коду | кодом | κωδικός | κωδικό | kodi | kodeord | koodin | msimbo",
    ),
)
PLAIN_JOINED = _words(
    "コード | 暗証番号 | 代码 | 代碼 | 코드 | رمزك | رمز | كود | الرمز | کد | کوڈ | קוד | הקוד | รหัส | कोड | কোড | కోడ్ | குறியீடு",
)
# Most of these stay the same for years; only digits next to words of signing in are a code.
PASSWORDS = _words(
    "password | passwort | kennwort | mot de passe | contraseña | clave | senha | wachtwoord | hasło | heslo | şifre",
    "şifreniz | parola | пароль | kata sandi | mật khẩu | lösenord | salasana",
)
PASSWORDS_JOINED = _words(
    "密码 | 密碼 | パスワード | 비밀번호 | पासवर्ड | كلمة المرور | رمز عبور | پاس ورڈ | รหัสผ่าน"
)

# Beginnings of words that speak of signing in, proving who one is, or a code that must be kept secret.
SIGNING_IN = _words(
    "log in | login | log-in | logging in | sign in | sign-in | signin | signing in | sign up | sign-up | verify | verifi",
    "authentic | confirm your | confirm that | two-factor | 2-step | two-step | one-time | expires | expire in | valid for",
    "do not share | don't share | don’t share | never share | reset your password | your identity | it's you | it’s you",
    "your device | your phone number | requested | browser window | complete your registration | valid until | finish creating | only once",
    "iniciar sesión | inicia sesión | inicio de sesión | caduca | válido | no compart | acceder | confirmar tu | tu identidad",
    "entrar na | fazer login | iniciar sessão | expira | não compart | sua conta | aceder | seu e-mail",
    "connexion | connecter | expire | ne partagez | ne communiquez | vérifi | valable | identité | s'identifier",
    "accedere | accesso | scade | non condivid | verific | valido | la tua identità",
    "anmeld | einlogg | bestätig | gültig | läuft ab | niemandem | geben sie diesen code | verifizier | identität | weitergeben",
    "inlogg | in te logg | aan te meld | aanmeld | verloopt | geldig | bevestig | deel deze | verifieer",
    "logga in | giltig | dela inte | log ind | logge inn | gyldig | kirjaudu | voimassa | vahvista | bekræft | bekreft",
    "zaloguj | zalogow | logowan | ważny | wygasa | nie udostępniaj | potwierdź | weryfik | přihlá | platn | nesdílejte | ověř | prihlás",
    "bejelentkez | érvényes | ne ossza | autentific | valabil | conecta | σύνδεση | ισχύει | επαλήθευσ | μην μοιρ",
    "войти | вход | войдите | подтвер | действ | не сообщайте | никому | увійти | дійсн | не повідомляйте | авториз | регистрац",
    "giriş | oturum | geçerli | paylaşmayın | doğrula | onayla | đăng nhập | hiệu lực | không chia sẻ | xác minh | xác nhận",
    "masuk | berlaku | jangan berikan | jangan bagikan | verifikasi | jangan kongsi | mag-log in | huwag | ingia | usishiriki",
    "登录 | 登入 | 验证 | 驗證 | 有效 | 请勿 | 請勿 | 注册 | 註冊 | 分钟内 | 分鐘內 | ログイン | サインイン | 認証 | 有効 | 本人確認 | 登録",
    "로그인 | 인증 | 유효 | 공유하지 | 본인확인 | 가입 | लॉगिन | लॉग इन | साइन इन | सत्याप | मान्य | साझा न | যাচাই | লগইন | লগ ইন | শেয়ার",
    "تسجيل الدخول | تحقق | صالح | لا تشارك | تأكيد | للدخول | ورود | تأیید | تایید | معتبر | در اختیار | لاگ ان | تصدیق | شیئر نہ",
    "ลงชื่อ | เข้าสู่ระบบ | ยืนยัน | หมดอายุ | כניסה | התחבר | אימות | בתוקף | אל תשתפ | ధృవీక | లాగిన్ | உள்நுழை | சரிபார்",
)
# Words in front of "code" (or, in Romance languages, behind it) that make it something else.
OTHER_KINDS = _words(
    "zip | post | postal | area | country | dial | dialing | calling | promo | promotion | promotional | discount | coupon",
    "voucher | gift | gift card | bonus | offer | referral | refer | invite | invitation | reward | rewards | loyalty | deal",
    "error | status | source | qr | bar | dress | product | item | article | stock | style | model | tax | bank | sort | swift",
    "bic | iban | branch | exit | return | response | reason | color | colour | hex | vat | morse | vs | building | penal",
    "course | class | subject | department | cost | project | job | customer | client | vendor | supplier | part | batch | lot",
    "booking | reservation | confirmation | tracking | shipping | order | flight | airport | station | airline | rate | fare",
    "tariff | hs | currency | language | iso | region | state | county | industry | naics | icd | diagnosis | cpt | billing",
    "native | binary | machine | byte | legacy | open | example | sample | test",
    "license | licence | serial | redemption | redeem | sale | vip | partner | affiliate | influencer | creator | friend",
    "club | member | membership | meeting | webinar | conference | event | ticket | seat | gate | door | locker | pickup",
    "collection | unlock | key | sku | upc | ean | isbn | abholung | abhol | gutschein | rabatt | aktions | vorteils | geschenk",
    "postleit | fehler | quell | strich | artikel | produkt | kunden | bestell | farb | steuer | länder | empfehlungs | freundschafts",
    "cadeau | promotionnel | réduction | remise | parrainage | article | client | barre | barres | couleur | erreur | source",
    "promocional | descuento | desconto | cupón | cupom | producto | produto | cliente | barras | área | error | erro | fuente",
    "referido | indicação | regalo | presente | sconto | promozionale | fiscale | postale | prodotto | articolo | regalo | errore",
    "kortings | kortingscode | actie | cadeau | product | klant | fout | bron | rabattkod | rabatkode | rabattkode | postkod",
    "rabatowy | promocyjny | pocztowy | kreskowy | produktu | błędu | slevový | dárkový | kedvezmény | kupon | termék",
    "промо | почтовый | ошибки | товара | скидки | купона | знижки | indirim | kampanya | promosyon | posta | hata | ürün | diskon | pos | produk",
    "giảm giá | khuyến mãi | bưu | sản phẩm | voucher | discount | promo",
)
OTHER_KINDS_JOINED = _words(
    "优惠 | 優惠 | 折扣 | 邮政 | 郵遞 | 源 | 错误 | 錯誤 | 推荐 | 邀请 | 邀請 | 兑换 | 兌換 | 产品 | 商品 | 区号 | 二维 | 条 | クーポン | プロモーション | 割引",
    "招待 | エラー | ソース | 商品 | 郵便 | 紹介 | バー | 할인 | 쿠폰 | 프로모션 | 추천 | 우편 | 오류 | 소스 | 상품 | 초대 | प्रोमो | कूपन | छूट",
    "الخصم | خصم | الترويج | القسيمة | البريد | تخفیف | پستی | معرف | ڈسکاؤنٹ | ส่วนลด | โปรโมชั่น | ไปรษณีย์ | הנחה | קופון | מיקוד",
)
# A shop, a journey or a meeting speaks; its codes open no account.
OTHER_MATTERS = _words(
    "% off | %off | discount | coupon | checkout | at check-out | promo | voucher | save up | free shipping | gift card",
    "shop now | your next order | your next purchase | off your | booking | reservation | itinerary | boarding | check-in",
    "flight | meeting id | dial in | dial-in | join zoom | join the meeting | join by phone | conference call | webinar | redeem | sale ends",
    "referral | refer a friend | parcel | pickup point | pick up your | error code | exit code | source code | tracking",
    "rabatt | gutschein | einkauf | bestellung | buchung | reservierung | flugnummer | paket | abholung | réduction | remise",
    "commande | réservation | panier | descuento | compra | reserva | vuelo | pedido | desconto | sconto | ordine",
    "prenotazione | korting | bestelling | boeking | rabat | zamówieni | rezerwacj | sleva | скидк | заказ | бронирован",
    "indirim | sipariş | diskon | belanja | giảm giá | đơn hàng | 优惠 | 優惠 | 折扣 | 订单 | 訂單 | クーポン | 割引 | 予約 | 注文",
    "할인 | 쿠폰 | 주문 | 예약 | خصم | طلبك | تخفیف | छूट | ส่วนลด | הנחה",
)
# What may stand between the word and its code, besides marks: "is", and the like.
LINKS = _words(
    "is | was | are | below | here | now | for you | ist | lautet | lauten | est | es | es el | è | é | e | is de | luidt",
    "är | er | on | jest | to | to jest | je | este | είναι | это | є | це | là | của bạn là | adalah | ialah | ay | ni",
    "anda | anda adalah | kamu | kamu adalah | ihr | dein | suyo | tuo | you requested is | you requested | tu | su | seu",
    "to use is | to enter is | as follows | de verificación es | é o | is as follows | ditt | din",
    "هو | هي | الخاص بك هو | الخاص بك | شما | شما عبارت است از | است | ہے | آپ کا | है | हा | आहे | হল | হলো | হচ্ছে | คือ | ของคุณคือ",
    "是 | 为 | 為 | は | は、 | は次のとおりです | 은 | 는 | 은(는) | 는: | 입니다 | הוא | שלך הוא | שלך | ఇది | మీ | உங்கள் | :",
)
# Words that ask for the code to be typed, in front of it.
ASKING = _words(
    "use | enter | type | using | input | enter code | submit | geben sie | gib | nutze | nutzen sie | verwende",
    "utilisez | saisissez | entrez | usa | use o | introduce | ingresa | ingrese | digite | insira | utiliza | inserisci",
    "gebruik | voer | ange | använd | brug | indtast | bruk | wpisz | użyj | zadejte | použijte | введите | используйте",
    "введіть | girin | kullanın | gunakan | masukkan | nhập | sử dụng | 使用 | 输入 | 輸入 | 请输入 | 請輸入 | 입력 | أدخل | استخدم",
)
# What a code in front of its word is followed by.
IS_YOUR = _words(
    "is your | is the | is ur | ist ihr | ist dein | ist der | est votre | est ton | es tu | es su | es el | é o seu | é seu",
    "é o código | è il tuo | is je | is uw | är din | er din | er dit | to twój | jest twoim | je váš | on sinun | - ваш | — ваш",
    "ваш | это ваш | adalah kode | là mã | sizin | as your | como tu | как | 是您的 | 是你的 | 為您的 | 为您的 | は | が | هو رمز | آپ کا",
    "आपका | হল আপনার | คือรหัส | הוא קוד | ist | is",
)
# Words in front of a number that is no code.
OTHER_NUMBERS = _words(
    "phone | mobile | account | telephone | order | invoice | ticket | case | customer | reference | ref | tel | fax | call | no | nr | number | total | amount",
    "room | flight | size | version | port | line | ending in | ending | copyright | year | © | box | suite | floor | apt",
    "id | art | item | bug | issue | rfc | page | po | pmb | build | revision | commit | section | chapter | extension | ext",
    "bestellung | bestellnummer | rechnung | rechnungsnummer | kundennummer | auftrag | telefon | zeile | seite | commande",
    "facture | téléphone | pedido | factura | teléfono | telefone | ordine | fattura | telefono | bestelling | factuur",
    "zamówienie | faktura | objednávka | телефон | заказ | заказа | счет | замовлення | sipariş | fatura | pesanan | nomor",
    "đơn hàng | điện thoại | numéro | número | numero | nummer | numer | номер | № | n° | nº",
)
OTHER_NUMBERS_JOINED = _words(
    "订单 | 订单号 | 訂單 | 訂單編號 | 电话 | 電話 | 注文番号 | 주문번호 | 주문 번호 | 전화 | رقم الطلب | هاتف | تلفن | ऑर्डर"
)
# The same words, when the code is for what they name.
YOUR_NUMBERS = _words("your phone | your mobile | your account | your telephone | your customer")
OF = _words("de | du | di | des | da | do | of | for | pour | para | per | d' | d’")
# What may follow the number of a postcode, size or amount, and never a code.
UNITS = _words(
    "kb | mb | gb | tb | mm | cm | km | kg | mg | ml | px | pt | hz | khz | mhz | ghz | kw | kwh | mah | rpm | bps | kbps | mbps",
    "eur | usd | gbp | chf | inr | rs | euro | euros | dollars | pounds | yen | rub | руб | tl | zł | kr | am | pm | points",
    "street | st | ave | avenue | road | rd | blvd | users | people | customers | lines | items | times | years | days | hours",
)
# Capitals behind "your code is" that are words.
NO_CODES = frozenset(
    [
        "BELOW",
        "VALID",
        "HERE",
        "NOTE",
        "ONLY",
        "SHOWN",
        "SENT",
        "READY",
        "NOW",
        "THIS",
        "THAT",
        "YOUR",
        "CODE",
        "PLEASE",
        "ENTER",
        "CLICK",
        "ABOVE",
        "NEVER",
        "EXPIRED",
        "INVALID",
        "WRONG",
        "CORRECT",
        "FROM",
        "WITH",
        "FOR",
        "THE",
        "AND",
        "NOT",
        "JSON",
        "HTML",
        "HTTP",
        "HTTPS",
        "UTF",
        "USB",
        "ASCII",
        "README",
        "TODO",
        "IMPORTANT",
        "WARNING",
        "SECRET",
        "SAFE",
        "PRIVATE",
        "PYTHON",
        "JAVA",
        "PERL",
        "RUBY",
        "FREE",
        "OPEN",
        "GPL",
        "BSD",
        "MIT",
        "LGPL",
        "AGPL",
        "VOID",
        "NULL",
        "TRUE",
        "FALSE",
    ]
)
