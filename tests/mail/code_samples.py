# ruff: noqa: E501, RUF001 (one mail a line, in many languages)
"""Mails that bring a one-time code, by language and by form, each with the code that must be found."""

from postroom_mail.languages.read import languages
from tests.mail.soundness import SAMPLES


def _sentence(entry: str) -> tuple[str, str]:
    text, _, code = entry.rpartition(" => ")
    return text.replace("\\n", "\n"), code


BY_LANGUAGE: dict[str, list[tuple[str, str]]] = {
    language.name: [_sentence(entry) for entry in language.sections.get("codes: sentences", ())]
    for language in languages()
}


def _letters(name: str) -> dict[str, list[tuple[str, str]]]:
    """Sentences of products by language, written before the words were."""
    lines = (SAMPLES / "codes" / name).read_text("utf-8").splitlines()
    entries = [line.split(": ", 1) for line in lines if not line.startswith("#")]
    return {code: [_sentence(entry) for name, entry in entries if name == code] for code, _ in entries}


LETTERS = _letters("letters.txt")
UNSEEN = _letters("held_out.txt")

FORMS: list[tuple[str, str]] = [
    ("Your verification code:\n\n4\t8\t2\t1\t9\t3\n\nBye", "482193"),
    ("Your verification code:\n\n4\n\n8\n\n2\n\n1\n\n9\n\n3\n\nIt expires in ten minutes.", "482193"),
    ("Enter the code 4 8 2 1 9 3 to verify your email.\n", "482193"),
    ("Your sign-in code is\nK\t7\tX\tQ\t2\tP\n", "K7XQ2P"),
    ("Your code is:\n\nLTCV-OFFS\n\nValid for 10 minutes.", "LTCV-OFFS"),
    ("Your login code is HXQWTB", "HXQWTB"),
    ("Your login code: 4f8a2c", "4f8a2c"),
    ("G-482910 is your Google verification code", "G-482910"),
    ("FB-48213 is your confirmation code. Use it to verify your account.", "FB-48213"),
    ("verification code:482193", "482193"),
    ("Verification code - 482193", "482193"),
    ("Verification code – 482193", "482193"),
    ("*482193* is your verification code", "482193"),
    ("Your verification code is **482193**.", "482193"),
    ("Your verification code is `482193`.", "482193"),
    ('Your verification code is "482193".', "482193"),
    ("Your verification code is [482193]", "482193"),
    ("Your verification code is\n482193\n", "482193"),
    ("Your\nverification\ncode is 482193", "482193"),
    ("YOUR VERIFICATION CODE IS 482193", "482193"),
    ("Your code: AB12-CD34", "AB12-CD34"),
    ("Your one-time password is 0042 9911", "00429911"),
    ("Your verification code is 482\u2013193.", "482193"),
    ("Your verification code is 2024.", "2024"),
    ("PIN: 2024", "2024"),
    ("Your verification code is 20251103", "20251103"),
    ("認証コード：４８２１９３", "４８２１９３"),
    (
        "Order 99887 from 2024: to see it, enter the verification code 3344. Call 0800 123 456 for help.",
        "3344",
    ),
    ("Your Uber-like code is 4822. Reply STOP to unsubscribe.", "4822"),
    ("WhatsApp-like code: 482-193\n\nDon't share this code with others", "482193"),
]

# Written after the reader, to see whether it finds what it was not made with.
HELD_OUT: list[tuple[str, str]] = [
    (
        "GitHub: Here is your GitHub sudo authentication code:\n\n12907734\n\nThis code is valid for 15 minutes and can only be used once.",
        "12907734",
    ),
    (
        "Your Steam Guard code\n\nHere is the Steam Guard code you need to login to account ann_other:\n\nK7QXM\n\nThis email was generated because of a login attempt from a web or mobile device.",
        "K7QXM",
    ),
    (
        "Your Slack confirmation code is below — enter it in your open browser window.\n\nXK4-QMZ\n\nIf you didn't request this email, there's nothing to worry about.",
        "XK4-QMZ",
    ),
    ("Copy and paste this temporary login code:\n\n903114", "903114"),
    (
        "Amazon: To verify your email address, please use the following One Time Password (OTP):\n\n117204\n\nDo not share this OTP with anyone.",
        "117204",
    ),
    ("Your Discord verification code is: 552081", "552081"),
    ("Einmalcode: 774 102\nDer Code ist 5 Minuten gültig.", "774102"),
    ("Hier ist dein Anmeldecode für Acme: 774102", "774102"),
    ("Ton code de connexion : 61-42-09", "614209"),
    ("Votre code d'accès temporaire est le 614209", "614209"),
    ("Tu código para entrar es 330917, caduca en 10 minutos", "330917"),
    ("Il tuo codice OTP per accedere è 771905", "771905"),
    ("O seu código de acesso é 190882", "190882"),
    ("Seu código de segurança: 1 9 0 8 8 2", "190882"),
    ("Doğrulama kodunuz 448120. Bu kodu kimseyle paylaşmayın.", "448120"),
    ("Код подтверждения: 5512. Никому его не сообщайте", "5512"),
    ("Ваш одноразовый пароль 771204 действует 3 минуты", "771204"),
    ("您的验证码为：830174，5分钟内有效，请勿泄露。", "830174"),
    ("【某某】动态码 830174，您正在登录", "830174"),
    ("ワンタイムパスワード：830174（有効期限10分）", "830174"),
    ("確認コード\n\n830174\n\nこのコードをアプリに入力してください。", "830174"),
    ("[Web발신] 본인확인 인증번호(830174)를 입력해 주세요", "830174"),
    ("Mã OTP của bạn là 662801. Không chia sẻ mã này.", "662801"),
    ("รหัส OTP ของคุณคือ 662801 (Ref: KXZP)", "662801"),
    ("Twój jednorazowy kod logowania to 662801", "662801"),
    ("Je inlogcode is 662801.", "662801"),
    ("Din engångskod: 662801", "662801"),
    ("Kertakäyttökoodisi on 662801", "662801"),
    ("Jednorázový kód pro přihlášení: 662801", "662801"),
    ("Codul tău de verificare este 662801", "662801"),
    ("Ο κωδικός επαλήθευσης σας είναι 662801", "662801"),
    ("קוד האימות שלך הוא 662801", "662801"),
    ("رمز التحقق الخاص بك هو 662801", "662801"),
    ("आपका ओटीपी 662801 है। इसे किसी के साथ साझा न करें।", "662801"),
    ("আপনার ওটিপি হলো 662801", "662801"),
    ("Kode OTP Anda: 662801. JANGAN BERIKAN kode ini kepada siapa pun.", "662801"),
    ("Ваш код для входу: 662801", "662801"),
    ("PIN to confirm your email: 4471", "4471"),
    ("Please enter 4471 to confirm it's you.", "4471"),
    ("Device pairing code\n\nHJKT-92QM", "HJKT-92QM"),
]

ALL = [sample for samples in BY_LANGUAGE.values() for sample in samples] + FORMS + HELD_OUT
