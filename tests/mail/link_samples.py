# ruff: noqa: E501, RUF001 (words of many languages)
"""Labels of links, and sentences around bare ones ("@" is the link), with the purpose of each."""

_LABELS = {
    "verify": [
        *(
            "Verify your email",
            "Confirm email address",
            "Activate your account",
            "Complete your registration",
            "Verify my account",
        ),
        *(
            "E-Mail-Adresse bestätigen",
            "Konto aktivieren",
            "Bevestig je e-mailadres",
            "Confirmer votre adresse e-mail",
        ),
        *(
            "Activer mon compte",
            "Verificar tu correo",
            "Confirmar correo electrónico",
            "Verificar e-mail",
            "Confirmar seu e-mail",
        ),
        *(
            "Conferma il tuo indirizzo",
            "Verifica email",
            "Подтвердить адрес",
            "Підтвердити пошту",
            "Potwierdź adres e-mail",
        ),
        *(
            "E-posta adresini doğrula",
            "Xác minh email",
            "Verifikasi email",
            "验证您的邮箱",
            "驗證您的電子郵件",
            "メールアドレスを確認する",
        ),
        *(
            "이메일 인증하기",
            "تأكيد البريد الإلكتروني",
            "تأیید ایمیل",
            "ای میل کی تصدیق کریں",
            "ईमेल सत्यापित करें",
            "ইমেল যাচাই করুন",
            "ยืนยันอีเมล",
        ),
        *("Ověřit e-mail", "Bekräfta din e-postadress", "Vahvista sähköpostiosoite"),
    ],
    "signin": [
        *(
            "Sign in to Acme",
            "Log in",
            "Log in with this magic link",
            "Jetzt anmelden",
            "Inloggen",
            "Se connecter",
        ),
        *(
            "Iniciar sesión",
            "Fazer login",
            "Accedi",
            "Войти",
            "Увійти",
            "Zaloguj się",
            "Oturum aç",
            "Đăng nhập",
        ),
        *(
            "Masuk ke akun",
            "登录",
            "登入",
            "ログイン",
            "로그인",
            "تسجيل الدخول",
            "ورود به حساب",
            "लॉग इन करें",
            "লগ ইন করুন",
            "เข้าสู่ระบบ",
        ),
    ],
    "unsubscribe": [
        *(
            "Unsubscribe",
            "unsubscribe from this list",
            "Newsletter abbestellen",
            "Uitschrijven",
            "Se désabonner",
            "Darse de baja",
        ),
        *(
            "Cancelar inscrição",
            "Annulla iscrizione",
            "Отписаться",
            "Відписатися",
            "Wypisz się",
            "Abonelikten çık",
        ),
        *(
            "Hủy đăng ký",
            "Berhenti berlangganan",
            "退订",
            "取消訂閱",
            "配信停止はこちら",
            "수신거부",
            "إلغاء الاشتراك",
            "لغو اشتراک",
        ),
        *("सदस्यता समाप्त करें", "ยกเลิกการสมัคร", "Odhlásit odběr", "Avregistrera"),
    ],
    "other": [
        *(
            "View in browser",
            "Shop now",
            "Track your parcel",
            "Read more about our new season of plays",
            "Pay the invoice now",
        ),
        *(
            "Confirm your booking",
            "Confirm attendance at the annual meeting",
            "Zum Angebot",
            "En savoir plus",
            "Ver oferta",
        ),
        *(
            "查看详情",
            "詳細を見る",
            "Download the report of this year",
            "Datenschutz",
            "Help",
            "Terms of service",
            "Reply to Ann on the site",
        ),
    ],
}
_SENTENCES = {
    "verify": [
        *("Verify your email address:\n@\n", "Please click the link below to verify your account.\n\n@\n\nThanks", "To confirm your email open @ now."),
        *("Bitte klicken Sie hier, um Ihre E-Mail-Adresse zu bestätigen:\n@", "Pour confirmer votre adresse, cliquez ici : @", "Cliquez sur @ pour activer votre compte."),
        *("Para confirmar tu correo, abre @", "Для завершения подтвердите адрес: @", "请点击以下链接验证您的邮箱：\n@", "メールアドレスの確認はこちら\n@"),
    ],
    "signin": [
        *("Use this link to sign in:\n\n@\n\nIt expires in an hour.", "Your magic link: @", "Klicken Sie zum Anmelden: Einloggen\n@", "Connectez-vous ici : @", "点击登录：@"),
    ],
    "unsubscribe": [
        *("To unsubscribe, visit @", "If you no longer wish to get these mails: @", "Zum Abbestellen: @ (Newsletter abbestellen)", "Pour vous désabonner : @", "Чтобы отписаться: @", "退订请点击 @"),
    ],
    "other": [
        *("The minutes are at @ and the photographs too.", "See @", "We verified it. The build is at @", "I had to log in twice. Look at the picture: @", "Dein Paket: @"),
    ],
}  # fmt: skip
LABELS = [(purpose, label) for purpose, labels in _LABELS.items() for label in labels]
SENTENCES = [(purpose, sentence) for purpose, sentences in _SENTENCES.items() for sentence in sentences]
