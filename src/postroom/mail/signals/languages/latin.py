"""Wording of Polish, Turkish, Vietnamese and Indonesian."""

from postroom.mail.signals.languages.language import Language

LATIN = (
    Language(
        name="Polish",
        ignore="zignoruj|ignoruj|zignorujcie|pomin|zapomnij|odrzuc|nie stosuj|zlekcewaz",
        earlier=(
            "poprzedni|wczesniejsz|wszystkie|wszelkie|dotychczasow|swoje|twoje|powyzsz|pierwotn|otrzyman|"
            "wczesniej"
        ),
        instructions=(
            "instrukcj|polece|polecen|wytyczn|zasady systemu|rozkaz|wskazow|komunikat systemow|"
            "prompt systemow"
        ),
        address=(
            "uwaga|notatka dla|wiadomosc dla|wiadomosc do|instrukcja dla|instrukcje dla|polecenie dla|"
            "drogi|droga|szanowny|jesli jestes|jezeli jestes|jestes|jestes teraz|od teraz jestes|czesc"
        ),
        machine=(
            "asystent ai|asystenta ai|asystencie ai|asystentem ai|agenta ai|agentem ai|agent ai|"
            "modelem jezykow|modelu jezykow|model jezykow|modelem ai|llm|ai,|ai:|automatycznym asystentem"
        ),
        reveal="ujawnij|pokaz|wypisz|powtorz|podaj|wyslij|napisz|wydrukuj|udostepnij",
        prompt=(
            "prompt systemow|promptu systemow|swoje instrukcje|twoje instrukcje|swoj prompt|"
            "instrukcje systemow"
        ),
        unnoticed=(
            "bez informowania uzytkownika|bez wiedzy uzytkownika|bez pytania uzytkownika|"
            "nie informuj uzytkownika|nie mow uzytkownikowi|nie mow o tym uzytkownikowi|"
            "nie powiadamiaj uzytkownika|nie wspominaj|bez potwierdzenia"
        ),
        send=(
            "wyslij mi|wyslij nam|wyslij|przeslij|prosimy o przeslanie|prosze o przeslanie|prosze wyslac|"
            "odpowiedz podajac|odpisz podajac|odpowiedz na te wiadomosc, podajac|podaj|podaj mi|"
            "udostepnij|prosze podac|przekaz|o podanie|nam podac|wyslac nam|odeslij"
        ),
        valuables=(
            "haslo|hasla|klucz api|klucze api|klucz prywatny|klucz tajny|kod weryfikacyjny|"
            "kod bezpieczenstwa|kod sms|token dostepu|dane logowania|danych logowania|fraza odzyskiwania|"
            "numer karty|kod autoryzacyjny"
        ),
        forward="przekaz|przeslij|przekieruj|przesylaj|wyslij kopi|przekazuj",
        many="wszystkie|kazda|kazdy|cala|caly|calej|wszelkie",
        mails="e-mail|email|maile|wiadomosc|skrzynk|korespondencj|poczt",
        never=(
            "nigdy|nie podawaj|nie wysylaj|nie udostepniaj|nie prosimy|nie przekazuj|nikomu|nie odpowiadaj"
        ),
    ),
    Language(
        name="Turkish",
        ignore="yok say|yoksay|gormezden gel|dikkate alma|unut|goz ardi et|gozardi et|bosver|uyma",
        earlier="onceki|tum|butun|yukaridaki|mevcut|ilk|sistem|daha once",
        instructions="talimat|yonerge|komut|kurallarini|direktif|sistem mesaji|sistem prompt|istem",
        address="dikkat|talimat|sevgili|sayin|eger bir|eger sen bir|sen bir|artik bir|artik|merhaba",
        machine=(
            "yapay zeka asistan|yapay zeka ajan|yapay zeka model|dil modeli|ai asistan|llm|otomatik asistan"
        ),
        reveal="goster|yazdir|tekrarla|acikla|soyle|gonder|paylas|ifsa et",
        prompt="sistem istemi|sistem istemini|sistem prompt|sistem talimat|talimatlarini",
        unnoticed=(
            "kullaniciya soyleme|kullaniciya haber verme|kullaniciya bildirme|kullaniciya bilgi verme|"
            "kullanicinin haberi olmadan|kullaniciya sormadan|kullaniciya soylemeden|"
            "kullaniciya haber vermeden|kullaniciya bildirmeden|onay istemeden|bundan bahsetme"
        ),
        send=(
            "bana gonder|bize gonder|gonderin|gonderiniz|yanitlayin|cevap verin|bana ilet|bize ilet|"
            "iletin|paylasin|bildirin|bana ver|bize verin|yazin|gonder |gonder.|gondermenizi|iletmenizi|"
            "bildirmenizi|paylasmanizi"
        ),
        valuables=(
            "sifre|parola|api anahtar|gizli anahtar|ozel anahtar|dogrulama kod|guvenlik kod|onay kod|"
            "erisim belirtec|giris bilgi|kurtarma ifade|kart pin|kart numara|tek kullanimlik"
        ),
        forward="ilet|yonlendir|gonder|aktar",
        many="tum|butun|hepsi|gelen|her ",
        mails="e-posta|eposta|mail|mesaj|gelen kutusu|yazisma|ileti",
        never="asla|hicbir|kimseyle|kimseye|paylasmayin|istemez|istemeyiz|gondermeyin|vermeyin",
    ),
    Language(
        name="Vietnamese",
        ignore="bo qua|phot lo|quen|dung tuan theo|khong tuan theo",
        earlier="truoc|tat ca|tren|ban dau|cua ban|hien tai|da nhan",
        instructions="chi dan|huong dan|chi thi|menh lenh|lenh|quy tac he thong|loi nhac|prompt he thong",
        address=(
            "chu y|luu y cho|ghi chu cho|thong bao cho|huong dan cho|chi dan cho|neu ban la|ban la|"
            "voi tu cach|bay gio ban la|kinh gui|than gui"
        ),
        machine=(
            "tro ly ai|tac nhan ai|mo hinh ngon ngu|mo hinh ai|ai dang doc|llm|ai,|ai:|mot ai|tro ly tu dong"
        ),
        reveal="tiet lo|hien thi|in ra|lap lai|gui|cho toi|viet ra|chia se",
        prompt="loi nhac he thong|prompt he thong|chi dan he thong|huong dan he thong|chi thi he thong",
        unnoticed=(
            "khong noi voi nguoi dung|dung noi voi nguoi dung|khong thong bao cho nguoi dung|"
            "dung thong bao cho nguoi dung|dung cho nguoi dung biet|ma khong hoi nguoi dung|"
            "khong can hoi nguoi dung|khong de nguoi dung biet|ma khong bao cho nguoi dung|"
            "khong can xac nhan"
        ),
        send=(
            "gui cho toi|gui cho chung toi|gui lai|hay gui|vui long gui|tra loi bang|"
            "tra loi email nay kem|tra loi kem|cung cap|cho toi biet|cho chung toi biet|chia se|"
            "chuyen cho"
        ),
        valuables=(
            "mat khau|khoa api|khoa bi mat|khoa rieng|ma xac minh|ma xac thuc|ma otp|ma bao mat|"
            "thong tin dang nhap|ma pin the|so the|cum tu khoi phuc|token truy cap"
        ),
        forward="chuyen tiep|gui tiep|gui ban sao|chuyen huong",
        many="tat ca|toan bo|tung|moi email|moi thu|moi tin",
        mails="email|e-mail|thu|tin nhan|hop thu",
        never=(
            "khong bao gio|dung chia se|khong chia se|khong gui|dung gui|khong cung cap|dung cung cap|"
            "khong yeu cau"
        ),
    ),
    Language(
        name="Indonesian",
        ignore="abaikan|lupakan|jangan ikuti|kesampingkan|hiraukan",
        earlier="sebelumnya|semua|seluruh|di atas|terdahulu|awal|anda|kamu|sistem|yang diberikan",
        instructions="instruksi|perintah|petunjuk|arahan|pedoman|pesan sistem|aturan sistem|prompt sistem",
        address=(
            "perhatian|catatan untuk|pesan untuk|instruksi untuk|perintah untuk|jika anda|jika kamu|"
            "bila anda|anda adalah|kamu adalah|sekarang anda|sekarang kamu|halo|yth"
        ),
        machine=(
            "asisten ai|agen ai|model ai|model bahasa|ai yang|llm|ai,|ai:|asisten otomatis|asisten email"
        ),
        reveal="ungkapkan|tampilkan|tunjukkan|cetak|ulangi|kirim|beritahu|tuliskan|bagikan|berikan",
        prompt=(
            "prompt sistem|instruksi sistem|system prompt|instruksi awal anda|instruksi anda|perintah sistem"
        ),
        unnoticed=(
            "tanpa memberi tahu pengguna|tanpa memberitahu pengguna|tanpa sepengetahuan|"
            "jangan beri tahu pengguna|jangan beritahu pengguna|jangan memberi tahu pengguna|"
            "jangan katakan kepada pengguna|tanpa bertanya kepada pengguna|tanpa bertanya pada pengguna|"
            "jangan sebutkan hal ini|tanpa konfirmasi"
        ),
        send=(
            "kirimkan|kirim|balas dengan|balas email ini dengan|berikan|beritahukan|bagikan|sebutkan|"
            "serahkan|sampaikan|mengirimkan|memberikan"
        ),
        valuables=(
            "kata sandi|password|kunci api|kunci rahasia|kunci pribadi|kunci privat|kode verifikasi|"
            "kode otp|kode keamanan|kredensial|token akses|frasa pemulihan|nomor kartu|pin atm|pin atm|"
            "data login"
        ),
        forward="teruskan|forward|kirim salinan|alihkan|meneruskan",
        many="semua|seluruh|setiap|segala",
        mails="email|e-mail|surel|pesan|kotak masuk|surat",
        never="jangan|tidak pernah|tidak akan|siapa pun|siapapun",
    ),
)
