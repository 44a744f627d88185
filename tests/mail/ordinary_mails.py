# ruff: noqa: E501, RUF001 (one mail a line, in many languages)
"""Ordinary mails of many kinds, in which no one-time code stands, with places for numbers and names.

`filled` puts chance values of the right kind into the places, so that each mail can be had in many copies.
"""

import random
from collections.abc import Iterator

NEWSLETTERS = [
    "Hello {name},\n\nour sale starts today: {percent}% off everything with code {promo} at checkout.\n\nShop now\n\n© {year} Acme, {street}, {zip} {city}",
    "Use promo code {promo} before {date} and save ${price} on your next order.",
    "Bonus Code: KING1\n\nPlay now and get {number} free spins. Enter bonus code {promo} when you deposit.",
    "Your exclusive code: {promo}\n\nEnjoy {percent}% off your first purchase. Offer ends {date}.",
    "We miss you! Here's a coupon for you.\nCode: {promo}\nValid for orders over {price} EUR.",
    "Gutscheincode: {promo}\nSpare {percent} % auf deinen Einkauf bis {date}.",
    "Code promo : {promo}\nProfitez de -{percent} % sur votre commande jusqu'au {date}.",
    "Código promocional: {promo}. {percent}% de descuento en tu compra.",
    "Codice sconto: {promo} – {percent}% sul tuo prossimo ordine",
    "Промокод: {promo}. Скидка {percent}% на первый заказ до {date}.",
    "优惠码：{promo}，订单满{number}元可用。",
    "クーポンコード：{promo}\n{percent}%割引、{date}まで。",
    "할인 코드: {promo} 주문 시 {percent}% 할인",
    "كود الخصم: {promo} خصم {percent}% على طلبك",
    "İndirim kodu: {promo}, siparişinizde %{percent} indirim.",
    "Mã giảm giá: {promo} cho đơn hàng từ {number}đ",
    "Kode promo: {promo} diskon {percent}% untuk belanja berikutnya",
    "Kortingscode: {promo} – {percent}% korting op je bestelling",
    "Kod rabatowy: {promo}, -{percent}% na zamówienie",
    "The weekly digest, issue {number}\n\n1. How {number} developers write code\n2. {product} reviewed\n3. The year {year} in numbers\n\nYou receive this because you subscribed. Unsubscribe here.",
    "Invite your friends! Your referral code is {promo}. Each friend who signs up gives you ${price}.",
    "New in: {product} in size {size}, from ${price}. Product code {order}.",
    "Black Friday is here. {percent}% off with BLACK{percent} until {date}. Log in to your account to see member prices.",
    "Your loyalty points: {number}. Redeem them with reward code {promo} in any shop.",
    "Free shipping code: SHIP{percent}. Verify your size before you order: {size}.",
    "Member news {year}/{percent}: vote for the board, the new dress code, and {number} more things to read.",
]
RECEIPTS = [
    "Thank you for your order!\n\nOrder number: {order}\nTotal: ${price}\n\n1 x {product}, item code {item}\n\nShip to: {name}, {street}, {city} {zip}",
    "Receipt {order}\n\nVisa ending in {four}\nAuthorization code: approved\nAmount {price} EUR\nDate {date}",
    "Invoice {order} of {date}\n\nCustomer no. {number}\nAmount due: {price} EUR\nIBAN DE{number}{number}\nSWIFT code COBADEFF",
    "Rechnung Nr. {order}\n\nKundennummer {number}\nBetrag: {price} EUR\nBitte überweisen Sie bis {date}.\nAcme GmbH, {zip} {city}",
    "Facture n° {order}\n\nCode client : {number}\nMontant : {price} €\n{street}, 75004 Paris",
    "Factura {order}\nCódigo de cliente: {number}\nTotal: {price} €\n{street}, {zip} Madrid",
    "Fattura {order}\nCodice cliente: {number}\nCodice fiscale: RSSMRA80A01H501U\nTotale {price} €",
    "Your payment of ${price} to {name} was sent. Transaction ID {order}. If this was not you, call {phone}.",
    "Your receipt from Acme\nReceipt #{order}\nPaid {date}\nVISA - {four}\nProduct code: {item}\nQty 1",
    "订单号：{order}\n金额：{price}元\n感谢您的购买。",
    "ご注文番号：{order}\n商品コード：{item}\n合計：{number}円",
    "주문번호 {order}\n결제금액 {number}원\n상품 코드 {item}",
    "Заказ № {order} оплачен. Сумма {number} руб. Артикул {item}. Телефон {phone}.",
    "Pedido {order} confirmado. Valor R$ {price}. CEP {zip}.",
    "Sipariş no: {order}. Tutar {price} TL. Ürün kodu: {item}.",
    "Your subscription renews on {date} for ${price}. Plan code: PRO{percent}. Log in to change it.",
    "Tax year {year}: your statement is ready. Tax code {taxcode}. Sign in to read it.",
    "Direct debit of {price} GBP on {date}. Sort code 12-34-56, account {number}.",
]
TRAVEL = [
    "Your flight is confirmed.\n\nBooking code: {pnr}\nFlight {flight}, {date}\nSeat {seat}\nGate opens at {time}",
    "Reservation confirmed\n\nConfirmation code: {pnr}\nCheck-in {date} from {time}\nHotel Acme, {street}, {zip} {city}",
    "Your itinerary: {flight} on {date}, {flight} on {date}. Booking reference {pnr}. Online check-in is open.",
    "Buchungscode: {pnr}\nAbfahrt {time} Uhr, Gleis {small}, {date}\nWagen {small}, Platz {small}",
    "Code de réservation : {pnr}\nVotre vol {flight} du {date}. Check-in en ligne ouvert.",
    "Código de reserva: {pnr}. Vuelo {flight}, {date}. Asiento {seat}.",
    "Codice di prenotazione: {pnr}\nTreno {number}, carrozza {small}, posto {seat}",
    "Kod rezerwacji: {pnr}, lot {flight}, {date}",
    "Your table for {small} at {time} on {date} is booked. Confirmation number {order}. Call {phone} to change the reservation.",
    "Ticket {order}\nDoors {time}, {date}\nSection {small}, row {small}, seat {small}\nShow the QR code at the gate.",
    "Your ride on {date}\nTrip fare ${price}\nDriver {name}, plate AB{number}",
    "Your check-in guide: the address is {street}, {zip} {city}. The host {name} waits for you at {time}. Phone {phone}.",
    "予約番号：{order}\nチェックイン：{date} {time}\n電話：{phone}",
    "Ваше бронирование {order} подтверждено. Заезд {date} в {time}. Код бронирования: {pnr}.",
]
SHIPPING = [
    "Your parcel is on its way.\nTracking number: {tracking}\nDelivery on {date} to {zip} {city}.",
    "Ihr Paket {tracking} kommt am {date}. Zustellung: {street}, {zip} {city}",
    "Votre colis {tracking} arrive le {date}. Code postal {zip}. Suivez votre commande en ligne.",
    "We could not deliver parcel {tracking}. Collect it at the post office, {street}, {zip} {city}, from {time}.",
    "Shipment {order} has left {city}. Weight {small} kg, size {small} x {small} x {small} cm. HS code {number}.",
    "Tracking code: {tracking}\nYour order {order} was sent on {date}.",
    "您的包裹已发货，单号{tracking}，收件人电话{phone}，邮政编码{zip}。",
    "お荷物番号 {tracking}\nお届け日 {date}\n郵便番号 {zip}",
    "Посылка {tracking} прибыла. Почтовый индекс {zip}. Отделение работает до {time}.",
    "Please confirm your postal code: {zip}. Our driver calls from {phone}.",
    "Pakiet {tracking} jest w drodze. Kod pocztowy {zip}, {city}.",
    "Your zip code {zip} is in our delivery area. Orders over ${price} ship free.",
]
WORK = [
    "Hi {name},\n\nplease review the code in {file} around line {number}. The login page fails with error code {number}.\n\nThanks",
    "The build {order} failed with exit code {small}.\nSee the log at https://ci.example/{order}\ncommit {hash}",
    "{name} commented on pull request #{number}: I'd verify the code path in {file}:{number} before we merge.",
    "[PATCH v{small} {small}/{small}] net: verify the code {number} of the reply\n\n---\n {file} | {small} ++\n 1 file changed",
    "> The code in GNOME2 needs 256MB of memory.\n\nNot on my machine: it runs with {number}MB since {year}.",
    "Source code of version {small}.{small}.{number} is at https://example.org/src-{number}.tar.gz. MD5 {hash}.",
    "Bug {number}: the verification of ISO8859 names fails. RFC {number} says so. Steps: log in, open item {number}.",
    "Our dress code for {date} is casual. The dial-in is {phone}, room {number}.",
    "Join Zoom Meeting\nhttps://zoom.example/j/{order}\n\nMeeting ID: {order}\nPasscode: {number}\nDial by your location {phone}",
    "Join the meeting: https://meet.example/x\nDial-in: {phone} PIN: {number}#\nThe conference call starts at {time}.",
    "The code freeze is on {date}. Release {year}.{small} has {number} changes; code coverage is {percent}%.",
    "Ticket #{number} was closed by {name}. The response code was {number}, and the status code {number} means a timeout.",
    "Sprint {small}: {number} points. {name} pairs on the sign-in page, {name} verifies bug {number}.",
    "Server host{small} rebooted at {time}. Uptime {number} s. Status: OK. Port {number} is open.",
    "The new model X{number} has {number}GB; the code name is FALCON{small}. Price ${price}.",
    "Minutes of {date}: cost code {number} is closed, project code {item} opens. Next meeting {time}.",
    "Cron <root@host{small}> /usr/bin/backup\n\n{number} files, {number} MB, exit {small}",
    "In {file} the code reads 0x{hash}; change line {number} to return {number}.",
    "Please find attached the code listing {number} and the figures of {year}. Call me at {phone}.",
    "Re: morse code trainer\n\nI use 1200 baud. The code is in the public domain since {year}.",
    "Hallo {name}, der Fehlercode {number} kommt vom Drucker in Raum {number}. Der Quellcode liegt auf Port {number}.",
    "Bonjour {name}, le code source de {product} est en ligne ; le code erreur {number} vient de la ligne {number}.",
    "Hola {name}, el código fuente está en la línea {number}; código de error: {number}.",
    "Привет, {name}! Исходный код в строке {number}, код ошибки: {number}. Созвон в {time}.",
    "你好，源代码第{number}行有错误，错误代码：{number}。",
    "ソースコードの{number}行目でエラーコード：{number}が出ます。",
    "소스 코드 {number}번째 줄, 오류 코드: {number}",
    "Code review for {hash}: please verify {number} lines by {date}, and sign off in the tool.",
    "[Bug {number}] New: Sign in fails with code {number} on Windows {small}",
    "Course code: CS{number}\nRoom {number}, {time}\nThe exam is on {date}. Student number {order}.",
    "Vendor code {item}, batch code {number}, lot {number}: {number} pieces, {price} EUR each.",
    "Your job code is {item}, department {number}. Bring your passport on {date}.",
]
PERSONAL = [
    "Hi {name},\n\nsee you on {date} at {time}? We live at {street}, {zip} {city}. My number is {phone}.\n\nLove\nAnn",
    "Dear {name}, happy birthday! Forty years since {year}, who would have thought. I'll call from {phone}.",
    "Hallo {name}, wir treffen uns um {time} in der {street}, {zip} {city}. Meine Nummer: {phone}",
    "Coucou {name}, on se voit le {date} à {time} ? J'habite {street}, 75004 Paris. Mon numéro : {phone}",
    "Hola {name}, nos vemos el {date} a las {time} en {street}, {zip} {city}. Mi teléfono: {phone}",
    "Ciao {name}, ci vediamo alle {time} in {street}, {zip} {city}.",
    "Привет, {name}! Встречаемся {date} в {time}. Мой телефон {phone}.",
    "嗨{name}，{date} {time}见，我的电话是{phone}。",
    "{name}さん、{date}の{time}に会いましょう。電話は{phone}です。",
    "The recipe needs {number} g flour, {number} ml milk and 2 eggs; bake at {number} F for {small} minutes.",
    "I read your essay of {number} words. The chapter on the penal code of {year} is the best.",
    "Selling my bike, frame size {size}, model {product}, {price} EUR. Pick it up in {zip} {city}.",
    "The choir meets at {time}. Bring {small} copies. The parking costs ${price}.",
    "We moved! New address: {street}, {city}, CA {zip}. Our old area code stays.",
    "Do you remember the summer of {year}? I found {number} photographs.",
    "My daughter starts to code: she wrote {number} lines in {year}. Proud!",
    "Grandma's phone is {phone}; she can't log in, please verify the cable in room {small}.",
]
ACCOUNTS = [
    "Your password was changed on {date} at {time}. If this was not you, call {phone}.",
    "New sign-in from {city} on {date}, {time}. IP address 192.0.2.{small}. If it was you, there is nothing to do.",
    "Please verify your email address by clicking the link below.\nhttps://example.com/verify?token={hash}{hash}\n\nAcme Inc, {street}, {city}, CA {zip}",
    "Never tell anyone your verification code. We will never call you. Acme Bank, {street}, {zip} {city}, phone {phone}.",
    "Two-factor authentication is on for account {order} since {date}. Recovery codes are in your settings.",
    "Welcome {name}! Your customer number is {number}. Log in with your email address.",
    "Your account statement {number}/{year} is ready. Log in to read it. Balance: {price} EUR.",
    "Ihr Konto {number}: Neue Nachricht im Postfach. Bitte melden Sie sich an. Acme Bank, {zip} {city}",
    "Votre mot de passe a été modifié le {date}. Acme, {street}, {zip} {city}. Tél. {phone}",
    "We are updating our terms on {date}. Section {small}.{small} on codes of conduct is new. {number} members agreed.",
    "Your verification is complete. Reference {order}. You can now send up to ${number} a day.",
    "Your security code settings were changed on {date}. Contact us: {phone}, PO Box {number}, {city}.",
    "Ваш пароль изменён {date} в {time}. Служба поддержки: {phone}.",
    "您的密码已于{date} {time}修改。客服电话{phone}。",
    "パスワードが{date} {time}に変更されました。お問い合わせ：{phone}",
    "List password reminder\n\nPasswords for {name}@example.org:\n\nList                 Password // URL\n----                 --------\ndev@lists.example    {word}{small}",
    "Google Workspace billing: {number} licences, {price} USD, domain code registered {year}.",
    "Someone added you as a contact: {name}, {phone}. Sign in to accept.",
]
OTHERS = [
    "Dr. {name}: your appointment is on {date} at {time}, room {number}. Diagnosis code {item}, billing code {number}.",
    "Election {year}: polling place {street}, {zip} {city}, open until {time}. Bring the card with your number {number}.",
    "Weather for {city} {zip}: {small} degrees, wind {small} km/h, pressure {number} hPa.",
    "Stock alert: ACME at {price}, volume {number}. The bar code company rose {percent}% in {year}.",
    "Job offer: code {item}, {city}, {number} EUR a month. Apply by {date}.",
    "The building code of {year}, section {number}, wants doors of {number} mm.",
    "Lottery results {date}: {small} {small} {small} {small} {small} {small}. Jackpot ${number}000.",
    "Survey: how likely are you to recommend us?\n\n0 1 2 3 4 5 6 7 8 9 10\n\nYour answer code-named us in {year}.",
    "Page 1 2 3 4 5 6 of our code book. Price {price} EUR, ISBN 978-3-{number}-{small}-1.",
    "Score: {small}-{small}, attendance {number}. Season ticket prices from ${price}.",
    "QR-Code scannen und {number} Punkte sammeln. Aktionscode {promo}, gültig bis {date}.",
    "The colour code is #{hash}; use hex code {number}00 for the border.",
    "Country code +49, area code {small}{small}, then {number}. Office hours {time}.",
    "Gift card code: {gift}\nValue ${price}. Redeem it at checkout.",
    "License code {gift} for {product}; register before {date}. Keep the invoice {order}.",
    "Your class code is in the syllabus of {year}. Section {number}, Mondays {time}.",
    "Stop code {number}: bus {small} leaves at {time}, {time} and {time}.",
    "Fuel code E{small}, pump {small}, {price} EUR. Receipt {order}. VAT code {small}.",
    "Airport code SFO, terminal {small}, parking level {small}, space {number}.",
    "The PIN on this map marks {street}, {zip} {city}. Bowling pin set {number}, {price} EUR.",
    "HOUSE FOR RENT {number} SQ FT {city} {zip} CALL {phone} CODE OF CONDUCT APPLIES",
    "THE CODE IS OPEN SOURCE AND FREE. CALL {phone}. VERSION {small}.{small}",
    "To verify the offer, visit booth {number} at the {year} fair. Visitor code of conduct applies; hall {small}.",
    "Bitte beachten: Strichcode {number}{number}, Artikelcode {item}, PLZ {zip} {city}.",
]
KINDS = [NEWSLETTERS, RECEIPTS, TRAVEL, SHIPPING, WORK, PERSONAL, ACCOUNTS, OTHERS]

_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_CHOICES = {
    "name": ["Ann", "Bob", "Carla", "Dmitri", "Emeka", "Fatima", "Goro", "Hanna", "Ines", "Jan"],
    "word": ["maple", "river", "stone"],
    "city": [
        "Berlin",
        "Paris",
        "Madrid",
        "Springfield",
        "Leeds",
        "Kraków",
        "Lyon",
        "Utrecht",
        "Porto",
        "Austin",
    ],
    "street": [
        "12 Main Street",
        "548 Market St",
        "Hauptstraße 7",
        "10 rue de Rivoli",
        "Calle Mayor 3",
        "1600 Elm Ave",
    ],
    "product": [
        "GNOME2",
        "WD40",
        "PS5",
        "MP3",
        "H264",
        "X1000",
        "IPHONE15",
        "RTX4090",
        "SP500",
        "B2B",
        "T1000",
        "USB3",
    ],
    "promo": [
        "SAVE20",
        "KING1",
        "SUMMER25",
        "WELCOME10",
        "FALL2025",
        "VIP50",
        "SPRING",
        "XMAS24",
        "FREESHIP",
        "GET30OFF",
    ],
    "file": ["src/login.py", "main.c", "lib/verify.rb", "app/code.ts", "net/ipv4/tcp.c"],
    "date": ["2025-11-03", "3 Nov 2025", "03.11.2025", "11/03/2025", "November 3, 2025"],
    "size": ["42", "XL", "W32L34", "256MB", "38EU"],
    "year": [str(year) for year in range(1960, 2030)],
    "time": [f"{hour}:{minute}0" for hour in range(8, 20) for minute in range(6)],
}
_FORMS = {
    "number": ["199", "1999", "1999", "19999", "199999"],
    "order": ["199999", "19999999", "199-1999999", "A199999"],
    "item": ["AA1999", "199999", "AAA-199"],
    "pnr": ["XXXXXX"],
    "gift": ["AAAA-AAAA-AAAA"],
    "flight": ["AA199", "AA1999"],
    "seat": ["19A"],
    "tracking": ["1ZAAA19999999", "199999999999", "RR199999999DE"],
    "zip": ["19999", "1999", "199999", "19-999", "1999 AB"],
    "phone": ["+1 555 199 1999", "0199 199999", "555-1999"],
    "price": ["19.99", "199.99"],
    "percent": ["19"],
    "small": ["19"],
    "four": ["1999"],
    "hash": ["hhhhhhh"],
    "taxcode": ["1999L"],
}


def filled(mail: str, chance: random.Random) -> str:
    while "{" in mail:
        before, _, rest = mail.partition("{")
        name, _, behind = rest.partition("}")
        mail = before + _value(name, chance) + behind
    return mail


def _value(name: str, chance: random.Random) -> str:
    if name in _CHOICES:
        return chance.choice(_CHOICES[name])
    return "".join(_letter(kind, chance) for kind in chance.choice(_FORMS[name]))


def _letter(kind: str, chance: random.Random) -> str:
    """A chance letter for "A", digit for "9" (and not 0 for "1"), both for "X", hexadecimal for "h"."""
    kinds = {
        "A": _LETTERS,
        "9": "0123456789",
        "1": "123456789",
        "X": _LETTERS + "23456789",
        "h": "0123456789abcdef",
    }
    return chance.choice(kinds[kind]) if kind in kinds else kind


def copies(count: int, seed: int) -> Iterator[str]:
    """Each mail `count` times, with other values each time."""
    chance = random.Random(seed)
    for kind in KINDS:
        for mail in kind:
            for _ in range(count):
                yield filled(mail, chance)
