# ruff: noqa: E501, RUF001 (words of other languages use letters that look Latin)
"""Words on and around links that verify an address, sign someone in, or end a subscription."""


def _words(*lines: str) -> tuple[str, ...]:
    return tuple(word.strip() for line in lines for word in line.split("|"))


VERIFYING = _words(
    # English
    "verify your | verify my | verify email | verify e-mail | verify account | verify address | verify this | verify it",
    "verify identity | verify the email | to verify | verify now | email verification | account verification | confirm your email",
    "confirm your e-mail | confirm your account | confirm your address | confirm your registration | confirm your identity",
    "confirm your subscription | confirm your sign | confirm email | confirm my | confirm account | confirm address",
    "confirm subscription | confirm registration | confirm signup | confirm sign-up | confirm that this | confirm this email",
    "confirm this address | confirm it's you | confirm it’s you | confirm the email | activate your | activate my",
    "activate account | activate the account | account activation | complete your registration | complete registration",
    "complete your sign | finish signing up | finish registration | validate your | validate email | validate my",
    "yes, subscribe me | yes, it's me | approve sign",
    # German, Dutch, Scandinavian, Finnish
    "e-mail bestätigen | e-mail-adresse bestätigen | e-mail-adresse zu bestätigen | konto bestätigen | adresse bestätigen",
    "email bestätigen | registrierung bestätigen | anmeldung bestätigen | registrierung abschließen | konto aktivieren",
    "identität bestätigen | jetzt bestätigen | e-mail verifizieren | verifizieren | ihre e-mail-adresse, | konto freischalten",
    "bevestig je e-mail | bevestig uw e-mail | e-mailadres bevestigen | e-mail bevestigen | account bevestigen | account activeren",
    "bevestig je account | bevestig uw account | verifieer | registratie voltooien | aanmelding bevestigen | activeer je | activeer uw",
    "bekräfta din | verifiera | bekräfta e-post | aktivera ditt | bekræft din | bekræft e-mail | aktivér din | bekreft e-post",
    "bekreft din | aktiver konto | vahvista sähköposti | vahvista tili | aktivoi tili",
    # French, Spanish, Portuguese, Italian, Romanian, Catalan
    "vérifier votre | vérifier mon | vérifiez votre | confirmer votre adresse | confirmer mon | confirmez votre | confirmer votre compte",
    "confirmer l'adresse | confirmer l’adresse | confirmer votre e-mail | activer votre compte | activer mon compte | activez votre",
    "valider votre | valider mon | validez votre | confirmer votre inscription | finaliser votre inscription | confirmer l'inscription",
    "verificar tu | verifica tu | verificar su | verifique su | verificar mi | verificar correo | verificar cuenta | confirmar tu",
    "confirma tu | confirme su | confirmar su | confirmar correo | confirmar cuenta | confirmar mi | confirmar registro",
    "activar tu cuenta | activa tu cuenta | activar cuenta | activar mi cuenta | active su cuenta | completar registro | validar tu",
    "verificar seu | verificar o seu | verifique seu | verificar e-mail | verificar conta | confirmar seu | confirme seu | confirmar o seu",
    "confirmar e-mail | confirmar email | confirmar conta | confirmar meu | confirmar inscrição | ativar conta | ativar sua conta",
    "ative sua conta | ativar a sua conta | confirmar cadastro | confirme o seu",
    "verifica il tuo | verifica la tua | verifica email | verifica e-mail | verifica indirizzo | verifica account | conferma il tuo",
    "conferma la tua | conferma email | conferma e-mail | conferma indirizzo | conferma account | conferma registrazione | attiva il tuo",
    "attiva account | attiva l'account | conferma iscrizione | verificați | confirmați adresa | confirmă adresa | activează cont",
    "verifica el teu | confirma el teu | activa el teu",
    # Slavic, Greek, Hungarian
    "подтвердить | подтвердите | подтверждения адрес | активировать | активируйте | завершить регистрацию | верифицировать",
    "підтвердити | підтвердьте | активувати | завершити реєстрацію | potwierdź swój | potwierdź adres | potwierdź e-mail",
    "potwierdź konto | potwierdź rejestrację | zweryfikuj | aktywuj konto | aktywować konto | potwierdzić adres | ověřit e-mail",
    "ověřte | potvrdit e-mail | potvrďte | potvrdit adresu | aktivovat účet | overiť | potvrdiť e-mail | επαλήθευση | επιβεβαίωση",
    "επιβεβαιώστε | ενεργοποίηση λογαριασμού | e-mail megerősítése | erősítse meg | fiók aktiválása | erősítsd meg",
    # Turkish, Vietnamese, Indonesian and Malay, Filipino, Swahili
    "doğrula | doğrulayın | e-postanı onayla | e-postanızı onayla | hesabı etkinleştir | hesabınızı etkinleştir | aktive et",
    "xác minh | xác nhận email | xác nhận địa chỉ | xác nhận tài khoản | xác thực | kích hoạt tài khoản | verifikasi email",
    "verifikasi akun | verifikasi alamat | konfirmasi email | konfirmasi akun | aktifkan akun | sahkan e-mel | sahkan akaun",
    "i-verify | kumpirmahin | thibitisha",
    # Chinese, Japanese, Korean, Thai
    "验证邮箱 | 验证您的 | 验证电子邮件 | 验证你的 | 确认邮箱 | 确认您的 | 激活账户 | 激活账号 | 激活帐号 | 激活您的 | 验证邮件 | 立即验证 | 完成注册",
    "驗證您的 | 驗證電子郵件 | 驗證信箱 | 確認您的 | 啟用帳戶 | 啟用帳號 | 完成註冊 | 立即驗證",
    "メールアドレスを確認 | メールアドレスの確認 | メールアドレスを認証 | アカウントを確認 | 本登録 | 登録を完了 | 認証する | 確認する | アカウントを有効",
    "이메일 인증 | 이메일 확인 | 인증하기 | 계정 인증 | 계정 활성화 | 이메일 주소 확인 | 가입 완료 | 메일 인증",
    "ยืนยันอีเมล | ยืนยันบัญชี | ยืนยันที่อยู่ | เปิดใช้งานบัญชี",
    # Arabic, Persian, Urdu, Hebrew
    "تأكيد البريد | تأكيد بريدك | تأكيد حسابك | تأكيد الحساب | تفعيل الحساب | تفعيل حسابك | التحقق من | تحقق من بريدك | أكد بريدك",
    "تأیید ایمیل | تایید ایمیل | تأیید حساب | تایید حساب | فعال‌سازی حساب | فعالسازی حساب | تصدیق کریں | تصدیق کرنے",
    "אמת את | אימות כתובת | אישור כתובת | אשר את | הפעלת החשבון",
    # Hindi, Marathi, Bengali, Telugu, Tamil
    "सत्यापित करें | पुष्टि करें | सत्यापित करा | खाता सक्रिय | যাচাই করুন | নিশ্চিত করুন | ధృవీకరించండి | சரிபார்க்க | உறுதிப்படுத்த",
)
SIGNING_IN = _words(
    "sign in | sign-in | signin | log in | log-in | login | log me in | magic link | sign me in | secure link | access your account",
    "anmelden | einloggen | anmeldung | inloggen | aanmelden | logga in | log ind | logg inn | kirjaudu",
    "se connecter | connectez-vous | me connecter | connexion | iniciar sesión | inicia sesión | inicie sesión | acceder a tu | ingresar",
    "entrar na | fazer login | iniciar sessão | acessar conta | acessar sua conta | entrar agora | accedi | accedere | effettua l'accesso",
    "conectează | inicia la sessió | войти | вход в | войдите | увійти | вхід | zaloguj | zalogować | přihlásit | přihlaste | prihlásiť",
    "σύνδεση | bejelentkez | oturum aç | giriş yap | đăng nhập | masuk ke | masuk sekarang | log masuk | mag-log in | ingia",
    "登录 | 登入 | 登錄 | ログイン | サインイン | 로그인 | เข้าสู่ระบบ | ลงชื่อเข้าใช้ | تسجيل الدخول | سجل الدخول | سجّل الدخول | ورود به | وارد شوید",
    "لاگ ان | سائن ان | התחבר | כניסה לחשבון | लॉग इन | लॉगिन | साइन इन | লগ ইন | লগইন | లాగిన్ | உள்நுழை",
)
UNSUBSCRIBING = _words(
    "unsubscribe | opt out | opt-out | stop receiving | no longer wish | no longer want | manage subscription | leave this list",
    "remove me from | email preferences | manage preferences | update your preferences | communication preferences",
    "abmelden vom newsletter | newsletter abbestellen | abbestellen | abmelden | vom newsletter | austragen | afmelden | uitschrijven",
    "avregistrera | avprenumerera | avsluta prenumeration | afmeld | avmeld | avslutt abonnement | peruuta tilaus | lopeta tilaus",
    "se désabonner | désabonner | désinscrire | désinscription | ne plus recevoir | désabonnement",
    "darse de baja | darte de baja | cancelar suscripción | cancelar la suscripción | anular suscripción | dejar de recibir | date de baja",
    "cancelar inscrição | cancelar a inscrição | cancelar assinatura | descadastrar | descadastre | anular subscrição | deixar de receber",
    "cancelar a subscrição | annulla iscrizione | annulla l'iscrizione | disiscri | cancellati | cancella iscrizione | dezabon",
    "donar-se de baixa | отписаться | отказаться от рассылки | отписка | відписатися | wypisz | rezygnuj | anuluj subskrypcję",
    "zrezygnuj | odhlásit | odhlásiť | zrušit odběr | κατάργηση εγγραφής | διαγραφή | leiratkoz | abonelikten çık | üyelikten ayrıl",
    "aboneliği iptal | hủy đăng ký | huỷ đăng ký | ngừng nhận | berhenti berlangganan | berhenti langganan | henti langgan",
    "mag-unsubscribe | jiondoe | 退订 | 取消订阅 | 退訂 | 取消訂閱 | 配信停止 | 購読解除 | 配信解除 | メルマガ解除 | 登録解除 | 수신거부 | 수신 거부",
    "구독 취소 | 구독취소 | ยกเลิกการสมัคร | ยกเลิกการรับ | เลิกรับ | إلغاء الاشتراك | الغاء الاشتراك | لغو اشتراک | لغو عضویت",
    "ان سبسکرائب | הסרה מרשימת | להסרה | הסר אותי | ביטול מנוי | सदस्यता समाप्त | अनसब्सक्राइब | सदस्यता रद्द | আনসাবস্ক্রাইব",
    "సభ్యత్వాన్ని తీసివేయి | குழுவிலகு",
)
# Words that say nothing by themselves when they are all of a link's text.
LABELS_TO_VERIFY = frozenset(_words(
    "verify | confirm | activate | validate | bestätigen | verifizieren | aktivieren | bevestigen | confirmer | vérifier",
    "activer | valider | confirmar | verificar | activar | ativar | conferma | verifica | attiva | подтвердить | potwierdź",
    "doğrula | onayla | xác nhận | verifikasi | konfirmasi | 验证 | 确认 | 驗證 | 確認 | 認証 | 인증 | 확인 | تأكيد | تحقق | تأیید | ยืนยัน",
))  # fmt: skip
ADDRESS_OR_ACCOUNT = _words(
    "email | e-mail | account | registration | sign up | signing up | signed up | subscription | konto | registrier | compte",
    "inscription | adresse | cuenta | correo | registro | conta | cadastro | indirizzo | registrazione | почт | аккаунт | регистрац",
    "hesab | e-posta | tài khoản | akun | 邮箱 | 账户 | 账号 | 郵件 | 帳戶 | メール | アカウント | 이메일 | 계정 | البريد | حساب | ایمیل | บัญชี | อีเมล",
)
URLS_TO_VERIFY = frozenset(_words(
    "verify | verification | verif | verifyemail | confirm | confirmemail | activate | activation | validate | optin",
    "confirmsubscription | verifizieren | bestaetigen | confirmer | confirmar | verificar | activar | potwierdz | confirmaccount",
))  # fmt: skip
URLS_TO_SIGN_IN = frozenset(
    _words("login | signin | logon | magiclink | magic | sso | passwordless | autologin | anmelden")
)
URLS_TO_UNSUBSCRIBE = frozenset(_words(
    "unsubscribe | unsub | optout | unsubscribes | subscriptioncenter | abmelden | abbestellen | desuscribir | desinscrire",
    "desabonnement | listunsubscribe | unsubscription | descadastrar",
))  # fmt: skip
# An order or an invitation is confirmed by other links than an address.
URLS_OF_OTHER_MATTERS = frozenset(_words(
    "order | orders | booking | bookings | reservation | rsvp | appointment | payment | payments | attendance | event | delivery",
    "invoice | checkout | meeting | bestellung | commande | pedido",
))  # fmt: skip
# Labels that point at the link and leave its purpose to the sentence around it.
POINTING = _words(
    "here | click | link | this | button | continue | go | proceed | tap | yes | start | get started | open | next | hier | klicken",
    "weiter | los | klik | ici | cliquez | continuer | lien | aquí | clic | enlace | continuar | aqui | clique | qui | clicca | continua",
    "här | her | klicka | klikk | tästä | tutaj | kliknij | zde | sem | klikněte | tu | aici | εδώ | itt | здесь | сюда | ссылка | ссылке | тут | перейти",
    "burada | buraya | tıklayın | tıkla | di sini | klik di sini | tại đây | vào đây | dito | hapa | aquí.",
)
POINTING_JOINED = _words(
    "点击 | 这里 | 此处 | 链接 | 點擊 | 這裡 | 此處 | 連結 | こちら | クリック | ここ | リンク | 여기 | 클릭 | 링크 | 바로가기 | هنا | اضغط | الرابط | اینجا | کلیک",
    "یہاں | כאן | לחץ | यहाँ | यहां | क्लिक | येथे | এখানে | ক্লিক | ఇక్కడ | இங்கே | ที่นี่ | คลิก",
)
