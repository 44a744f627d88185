"""Wording of English, German and Dutch."""

from postroom.mail.signals.languages.language import Language

GERMANIC = (
    Language(
        name="English",
        ignore=(
            "ignore|ignoring|disregard|forget all|forget every|forget the|forget your|forget any|"
            "forget previous|forget prior|override|bypass|do not follow|stop following|discard"
        ),
        earlier=(
            "previous|prior|earlier|above|preceding|all|any|your|existing|original|initial|before|system|"
            "you were given|you received|you have been given|you were told|given to you"
        ),
        instructions=(
            "instruction|system prompt|prompts|guideline|directive|system message|programming|your rules|"
            "safety rules|your training|everything above|everything before|your orders|your constraints|"
            "your restrictions|directions|your prompt|this prompt|previous prompt|above prompt|"
            "initial prompt|original prompt|the prompt above"
        ),
        address=(
            "attention|note to|note for|notice to|message to|message for|instruction for|"
            "instructions for|instruction to|instructions to|directive for|directive to|dear|hey|"
            "if you are|if you're|as an|you are an|you are a|you are now|you are no longer|command for|"
            "task for|memo to|hello|to whichever|to whatever|whichever|whatever"
        ),
        machine=(
            "ai assistant|ai agent|ai model|ai system|ai reading|ai processing|ai language|ai,|ai:|"
            "ai that reads|llm|large language model|language model|assistant reading|"
            "assistant processing|agent reading|agent processing|automated assistant|automated agent|"
            "email assistant|mail assistant|chatbot"
        ),
        reveal=(
            "reveal|print|show|repeat|output|display|tell me|give me|send|disclose|leak|dump|recite|"
            "share|forward|copy|include|write out|list"
        ),
        prompt=(
            "your system prompt|the system prompt|your initial instructions|your hidden instructions|"
            "your original instructions|your instructions verbatim|your instructions word|"
            "your full instructions|your exact instructions|your developer message|your system message|"
            "your prompt"
        ),
        unnoticed=(
            "without telling the user|without informing the user|without notifying the user|"
            "without asking the user|without the user's|without your user|without telling your|"
            "without informing your|without asking your|do not tell the user|don't tell the user|"
            "do not inform the user|don't inform the user|do not notify the user|don't notify the user|"
            "do not mention this to|don't mention this to|do not alert the user|do not tell your|"
            "don't tell your|do not inform your|do not ask for confirmation|don't ask for confirmation|"
            "without asking for confirmation|without confirmation|do not reveal this to|"
            "keep this from the user|the user must not|the user should not know"
        ),
        send=(
            "send me|send us|please send|send your|send them to|send it to|send over your|reply with|"
            "respond with|answer with|replying with|reply to this email with|reply to this message with|"
            "reply to this mail with|email me|email us|mail me|mail us|text me|share your|share with me|"
            "share with us|give me|give us|provide me|provide us|provide your|tell me|tell us|paste your|"
            "post your|forward me|forward us|forward your|get me|dm me|include your|upload your|"
            "hand over|write back with|confirm your|need you to send|let me have|let us have|"
            "send us back|return to us|submit your|supply your|supply us"
        ),
        valuables=(
            "password|passphrase|passcode|api key|api-key|api token|api secret|access token|access key|"
            "secret key|private key|ssh key|seed phrase|recovery phrase|recovery code|backup code|"
            "2fa code|mfa code|verification code|one-time code|security code|login code|sign-in code|otp|"
            "credential|login detail|login data|log-in detail|your pin number|pin number|"
            "credit card number|card number|cvv|social security number|wallet key|session cookie|"
            ".env file|environment variables|signing key"
        ),
        forward="forward|redirect|auto-forward|bcc|send a copy of|send copies of|relay",
        many=(
            "all|every|entire|whole|future|incoming|unread|contents of|any |each|last ten|last 10|"
            "last few|last three|last five|last emails|last messages|latest emails|latest messages|"
            "recent emails|recent messages|the latest e|the last few"
        ),
        mails=(
            "emails|e-mails|mails|email|mail|messages|inbox|mailbox|conversation|correspondence|threads|"
            "attachments|invoices received"
        ),
        never=(
            "never|do not|don't|not to|will not|won't|no one|nobody|none of|cannot|can't|must not|"
            "should not|no need|without sending|instead of sending|asks users|asks customers|asks people|"
            "asks employees|asking users|asking people|asked users|attackers|criminals|scammers|"
            "fraudsters|phishing|look forward|looking forward|forward compat|forward-compat"
        ),
    ),
    Language(
        name="German",
        ignore=(
            "ignorier|missacht|vergiss|vergessen sie|verwirf|verwerfen sie|ubergeh|setze dich uber|"
            "beachte nicht|nicht mehr beachten|befolge nicht"
        ),
        earlier=(
            "vorherig|bisherig|vorig|obig|alle|fruher|vorangegangen|vorangehend|deine|ihre|ursprunglich|"
            "bisher|zuvor|erhalten|bekommen|gegebenen"
        ),
        instructions=(
            "anweisung|instruktion|vorgabe|richtlinie|befehl|systemnachricht|deine regeln|systemregeln|"
            "systemprompt|vorherigen prompt"
        ),
        address=(
            "achtung|hinweis an|hinweis fur|nachricht an|nachricht fur|anweisung an|anweisung fur|"
            "anweisungen an|anweisungen fur|liebe|lieber|liebes|wenn du|falls du|wenn sie|falls sie|"
            "du bist|du bist jetzt|du bist nun|sie sind|hallo"
        ),
        machine=(
            "ki-assistent|ki-agent|ki-modell|ki-system|ki assistent|ki agent|sprachmodell|llm|ki, die|"
            "ki,|ki:|ki bist|automatischer assistent|e-mail-assistent|mail-assistent"
        ),
        reveal="zeig|gib|nenn|verrat|wiederhol|druck|schreib|schick|send|offenbar|teile",
        prompt=(
            "systemprompt|system-prompt|deine anweisungen|deine instruktionen|deinen prompt|"
            "systemanweisung|deine system"
        ),
        unnoticed=(
            "ohne den benutzer|ohne den nutzer|ohne deinen benutzer|ohne deinen nutzer|"
            "ohne es dem benutzer|ohne es dem nutzer|ohne dem nutzer|ohne dem benutzer|ohne wissen des|"
            "sag dem benutzer nichts|sag dem nutzer nichts|sage dem nutzer nichts|"
            "sage dem benutzer nichts|informiere den nutzer nicht|informiere den benutzer nicht|"
            "erwahne das nicht|erwahne dies nicht|ohne ruckfrage|ohne bestatigung"
        ),
        send=(
            "schick mir|schicke mir|schicken sie|sende mir|senden sie|send mir|sende uns|schick uns|"
            "antworte mit|antworten sie mit|antworten sie auf diese e-mail mit|teilen sie uns|teile mir|"
            "teilen sie mir|gib mir|geben sie uns|geben sie mir|nennen sie|nenn mir|nenne mir|"
            "ubermitteln sie|mail mir|leite mir|sende |schicke |mitzuteilen|zuzusenden|uns ihr|uns ihre|"
            "uns zu senden|uns zu schicken|mir dein|ubersende"
        ),
        valuables=(
            "passwort|passworter|kennwort|kennworter|api-schlussel|api-key|privaten schlussel|"
            "geheimen schlussel|geheimschlussel|zugangsdaten|anmeldedaten|bestatigungscode|"
            "sicherheitscode|verifizierungscode|einmalcode|zugriffstoken|zugangstoken|"
            "wiederherstellungsphrase|seed-phrase|kartennummer|kreditkartennummer|login-daten"
        ),
        forward="leite|leiten sie|weiterleit|weiterzuleiten|sende eine kopie|kopiere",
        many="alle|jede|gesamte|samtliche|kunftig|ganze|eingehende",
        mails="e-mail|email|mail|nachricht|posteingang|postfach|konversation|korrespondenz",
        never="niemals|nie |nicht|keine|niemand|niemandem",
    ),
    Language(
        name="Dutch",
        ignore="negeer|vergeet|sla alle|laat alle|volg niet|negeren",
        earlier=(
            "vorige|voorgaande|eerdere|bovenstaande|alle|je|jouw|uw|oorspronkelijke|hiervoor|gekregen|eerder"
        ),
        instructions=(
            "instructie|richtlijn|opdracht|bevel|systeembericht|systeemregels|systeemprompt|vorige prompt"
        ),
        address=(
            "let op|opgelet|attentie|opmerking voor|notitie voor|bericht aan|bericht voor|"
            "instructie voor|instructies voor|instructies aan|beste|als je|als u|als jij|jij bent|"
            "je bent|je bent nu|hallo"
        ),
        machine=(
            "ai-assistent|ai-agent|ai-model|ai assistent|ai-systeem|taalmodel|llm|ai,|ai:|ai bent|ai die|"
            "automatische assistent|e-mailassistent"
        ),
        reveal="toon|laat|geef|onthul|herhaal|print|stuur|schrijf|deel",
        prompt="systeemprompt|systeem-prompt|je instructies|jouw instructies|je prompt|systeeminstructie",
        unnoticed=(
            "zonder de gebruiker|zonder je gebruiker|zonder het de gebruiker|"
            "zeg niets tegen de gebruiker|vertel de gebruiker niet|vertel het de gebruiker niet|"
            "informeer de gebruiker niet|buiten medeweten van|zonder om bevestiging"
        ),
        send=(
            "stuur mij|stuur me|stuur ons|mail mij|mail me|antwoord met|beantwoord deze mail met|"
            "geef mij|geef me|geef ons|verstrek|vertel ons|vertel mij|bezorg|deel |stuur |ons te sturen|"
            "toe te sturen|mij te sturen|ons uw"
        ),
        valuables=(
            "wachtwoord|api-sleutel|api-key|geheime sleutel|prive-sleutel|privesleutel|toegangscode|"
            "verificatiecode|beveiligingscode|inloggegevens|toegangstoken|herstelzin|pincode van|"
            "kaartnummer|eenmalige code"
        ),
        forward="stuur|doorsturen|zend|leid",
        many="alle|elke|hele|gehele",
        mails="e-mail|email|mails|berichten|postvak|inbox|correspondentie",
        never="nooit|niet|geen|niemand",
    ),
)
