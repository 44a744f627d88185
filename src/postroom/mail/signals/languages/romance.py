"""Wording of Spanish, Portuguese, French and Italian."""

from postroom.mail.signals.languages.language import Language

ROMANCE = (
    Language(
        name="Spanish",
        ignore=(
            "ignora|ignore|ignoren|ignorar|omite|omita|olvida|olvide|descarta|descarte|haz caso omiso|"
            "desatiende|no sigas"
        ),
        earlier=(
            "anterior|previa|previo|todas|todos|tus|sus|arriba|precedente|original|inicial|del sistema|"
            "antes|recibid|recibist|que te dieron"
        ),
        instructions=(
            "instruccion|indicacion|directriz|directrices|orden|reglas del sistema|mensaje del sistema|"
            "tus reglas|prompts|prompt anterior|prompt del sistema"
        ),
        address=(
            "atencion|nota para|nota al|aviso para|aviso al|mensaje para|mensaje al|instruccion para|"
            "instrucciones para|estimado|estimada|si eres|si usted es|eres|ahora eres|hola"
        ),
        machine=(
            "asistente de ia|asistente de inteligencia|agente de ia|modelo de lenguaje|modelo de ia|"
            "ia que lee|asistente automatico|asistente virtual que|asistente de correo|llm|ia,|ia:"
        ),
        reveal="revela|muestra|muestre|imprime|repite|dime|envia|escribe|comparte|devuelve",
        prompt=(
            "prompt de sistema|prompt del sistema|tus instrucciones|instrucciones de sistema|"
            "instrucciones del sistema|tu prompt|mensaje de sistema"
        ),
        unnoticed=(
            "sin decirle al usuario|sin decir al usuario|sin informar al usuario|sin avisar al usuario|"
            "sin preguntar al usuario|no informes al usuario|no se lo digas al usuario|"
            "no le digas al usuario|no avises al usuario|sin que el usuario|no menciones esto|"
            "sin pedir confirmacion"
        ),
        send=(
            "enviame|envieme|envianos|envienos|mandame|mandeme|mandanos|responde con|responda con|"
            "conteste con|contesta con|digame|facilite|facilitenos|proporcione|indiquenos|indiqueme|"
            "pasame|remita|reenvia|dime |dame |deme |envia |envie |comparte |comparta |enviarnos|"
            "enviarme|facilitarnos|indicarnos|enviar su|mandarme|devuelva"
        ),
        valuables=(
            "contrasena|clave de api|clave api|clave privada|clave secreta|clave de acceso|"
            "codigo de verificacion|codigo de seguridad|codigo que|token de acceso|credencial|"
            "frase semilla|frase de recuperacion|numero de tarjeta|datos de acceso|api key"
        ),
        forward="reenvia|reenvie|reenviar|remite|remita|envia una copia|envia copia|redirige",
        many="todo|toda|cada|cualquier|bandeja entera|recientes|ultimos|ultimas",
        mails="correo|mensaje|email|e-mail|bandeja de entrada|conversacion|buzon",
        never="nunca|no compart|no envi|no le pedir|jamas|no revel|no facilit|no respond|no debe|nadie",
    ),
    Language(
        name="Portuguese",
        ignore=(
            "ignore|ignora|ignorar|desconsidere|desconsidera|esqueca|esquece|descarte|desrespeite|nao siga"
        ),
        earlier=(
            "anterior|previa|todas|todos|suas|seus|tuas|acima|original|inicial|do sistema|antes|recebid|"
            "recebeu|que te deram"
        ),
        instructions=(
            "instruc|orientac|diretriz|ordens|comando|regras do sistema|mensagem do sistema|suas regras|"
            "prompts|prompt anterior|prompt do sistema"
        ),
        address=(
            "atencao|nota para|nota ao|aviso para|aviso ao|mensagem para|mensagem ao|instrucao para|"
            "instrucoes para|instrucoes ao|caro|cara|prezado|prezada|se voce e|se voce for|se es|voce e|"
            "voce agora e|agora voce e|ola"
        ),
        machine=(
            "assistente de ia|assistente de inteligencia|agente de ia|modelo de linguagem|modelo de ia|"
            "ia que le|assistente automatic|assistente virtual que|assistente de e-mail|llm|ia,|ia:"
        ),
        reveal="revele|revela|mostre|mostra|imprima|repita|diga|envie|escreva|compartilhe|partilhe",
        prompt=(
            "prompt de sistema|prompt do sistema|suas instrucoes|tuas instrucoes|instrucoes do sistema|"
            "instrucoes de sistema|seu prompt|mensagem do sistema"
        ),
        unnoticed=(
            "sem informar o usuario|sem avisar o usuario|sem contar ao usuario|sem dizer ao usuario|"
            "sem perguntar ao usuario|nao informe o usuario|nao conte ao usuario|nao diga ao usuario|"
            "nao avise o usuario|sem que o usuario|nao informes o utilizador|sem avisar o utilizador|"
            "sem informar o utilizador|nao mencione isso|nao mencione isto|sem pedir confirmacao"
        ),
        send=(
            "envie-me|envie-nos|envie|me envie|nos envie|mande|me mande|responda com|responda a este|"
            "compartilhe|partilhe|diga-me|me diga|me passe|passe-me|forneca|informe sua|informe a|"
            "informe o|encaminhe|enviar-nos|nos enviar|me enviar|enviar sua|informar sua|fornecer sua|"
            "nos fornecer"
        ),
        valuables=(
            "senha|palavra-passe|chave de api|chave da api|chave api|chave privada|chave secreta|"
            "codigo de verificacao|codigo de seguranca|codigo que|token de acesso|credencia|"
            "frase de recuperacao|frase-semente|numero do cartao|dados de acesso|api key"
        ),
        forward=(
            "encaminhe|encaminha|reencaminhe|reencaminha|encaminhar|redirecione|envie uma copia|envie copia"
        ),
        many="todo|toda|cada|qualquer|recentes|inteira|ultimos|ultimas",
        mails="e-mail|email|mensage|caixa de entrada|correio|conversa",
        never=(
            "nunca|nao compartilh|nao partilh|nao envi|jamais|nao revel|nao forne|nao pedi|nao respond|"
            "ninguem"
        ),
    ),
    Language(
        name="French",
        ignore=(
            "ignore|ignorez|ignorer|oublie|oubliez|ne tiens pas compte|ne tenez pas compte|"
            "ne tenez plus compte|ne tiens plus compte|fais abstraction|faites abstraction|ne suis plus|"
            "ne suivez plus|passe outre|passez outre"
        ),
        earlier=(
            "precedent|anterieur|toutes|tous|tes|vos|ci-dessus|initial|d'origine|du systeme|plus haut|"
            "avant|recues|recus|donnees auparavant"
        ),
        instructions=(
            "instruction|consigne|directive|ordres|regles du systeme|message systeme|tes regles|"
            "invite systeme|prompt precedent|prompt systeme"
        ),
        address=(
            "attention|note pour|note a|note aux|message pour|message a|message aux|instruction pour|"
            "instructions pour|instructions a|consigne pour|cher|chere|si tu es|si vous etes|en tant que|"
            "en tant qu'|tu es|vous etes|tu es maintenant|vous etes maintenant|bonjour"
        ),
        machine=(
            "assistant ia|assistante ia|ia qui|assistant d'ia|agent ia|agent d'ia|modele de langage|"
            "modele de langue|modele d'ia|assistant automatique|assistant de messagerie|llm|ia,|ia:|ia :"
        ),
        reveal=(
            "revele|montre|affiche|imprime|repete|donne|envoie|envoyez|ecris|divulgue|communique|recopie"
        ),
        prompt=(
            "prompt systeme|invite systeme|tes instructions|vos instructions systeme|"
            "instructions systeme|ton prompt|votre prompt|message systeme|consignes systeme"
        ),
        unnoticed=(
            "sans en informer l'utilisateur|sans informer l'utilisateur|sans le dire a l'utilisateur|"
            "sans prevenir l'utilisateur|sans avertir l'utilisateur|sans demander a l'utilisateur|"
            "sans que l'utilisateur|n'en parle pas a l'utilisateur|ne le dis pas a l'utilisateur|"
            "ne dis rien a l'utilisateur|n'informe pas l'utilisateur|n'informez pas l'utilisateur|"
            "ne previens pas l'utilisateur|sans demander confirmation|sans demander de confirmation"
        ),
        send=(
            "envoie-moi|envoyez-moi|envoyez-nous|envoie-nous|envoyez|reponds avec|repondez avec|"
            "repondez en indiquant|repondez en donnant|reponds en donnant|communiquez|communique-moi|"
            "donne-moi|donnez-moi|donnez-nous|transmettez|partagez|fournissez|dis-moi|dites-nous|"
            "indiquez-nous|indiquez-moi|partage |partage-|transmets |envoie |nous renvoyer|nous envoyer|"
            "nous communiquer|nous transmettre|nous fournir|m'envoyer|me transmettre|me communiquer|"
            "renvoyez-nous|me donner|nous donner"
        ),
        valuables=(
            "mot de passe|mots de passe|cle api|cle d'api|cle privee|cle secrete|cle d'acces|"
            "code de verification|code de securite|code recu|jeton d'acces|identifiants|"
            "phrase de recuperation|phrase secrete|code pin de votre carte|numero de carte|codes d'acces|"
            "api key"
        ),
        forward=(
            "transfere|transferez|transferer|fais suivre|faites suivre|redirige|redirigez|"
            "envoie une copie|envoyez une copie|reexpedie"
        ),
        many="tous|toutes|tout|chaque|l'ensemble|l'integralite|recents|derniers|dernieres",
        mails="e-mail|email|mail|courriel|message|boite de reception|boite mail|conversation",
        never=(
            "jamais|ne communiquez|ne partagez|ne donnez|n'envoyez|ne transmettez|ne vous demand|"
            "ne divulguez|ne repondez|ne pas|a personne"
        ),
    ),
    Language(
        name="Italian",
        ignore=(
            "ignora|ignorate|ignori|ignorare|dimentica|dimenticate|trascura|tralascia|non tenere conto|"
            "non seguire|scarta"
        ),
        earlier=(
            "precedent|anterior|tutte|tutti|tue|tuoi|sopra|original|inizial|di sistema|del sistema|prima|"
            "ricevut|date in"
        ),
        instructions=(
            "istruzion|direttiv|indicazion|ordini|linee guida|regole di sistema|messaggio di sistema|"
            "tue regole|prompt precedent|prompt di sistema"
        ),
        address=(
            "attenzione|nota per|nota all|avviso per|messaggio per|messaggio all|istruzione per|"
            "istruzioni per|gentile|caro|cara|se sei|se siete|in quanto|sei|ora sei|adesso sei|ciao"
        ),
        machine=(
            "assistente ia|assistente ai|assistente di intelligenza|agente ia|agente ai|"
            "modello linguistico|modello di linguaggio|modello di ia|assistente automatic|"
            "assistente di posta|llm|ia,|ia:|ai,|ai:|ia che"
        ),
        reveal="rivela|mostra|stampa|ripeti|dimmi|invia|inviami|scrivi|condividi|divulga",
        prompt=(
            "prompt di sistema|prompt del sistema|tue istruzioni|istruzioni di sistema|tuo prompt|"
            "messaggio di sistema"
        ),
        unnoticed=(
            "senza dirlo all'utente|senza informare l'utente|senza avvisare l'utente|"
            "senza avvertire l'utente|senza chiedere all'utente|senza che l'utente|non dirlo all'utente|"
            "non dire nulla all'utente|non informare l'utente|non avvisare l'utente|non menzionare|"
            "senza chiedere conferma"
        ),
        send=(
            "inviami|inviaci|mandami|mandaci|mi invii|ci invii|rispondi con|risponda con|rispondere con|"
            "rispondi indicando|condivida|dimmi|ci comunichi|comunicaci|comunicami|fornisci|fornisca|"
            "forniscici|girami|invia |invii |dammi |condividi |inviarci|inviarmi|mandarci|mandarmi|"
            "fornirci|comunicarci|fornire la"
        ),
        valuables=(
            "password|parola d'ordine|chiave api|chiave privata|chiave segreta|chiavi api|"
            "codice di verifica|codice di sicurezza|codice otp|token di accesso|credenziali|"
            "frase di recupero|seed phrase|numero della carta|numero di carta|dati di accesso"
        ),
        forward="inoltra|inoltri|inoltrare|inoltrami|reindirizza|invia una copia|gira ",
        many="tutte|tutti|ogni|intera|qualsiasi|recenti|ultimi|ultime",
        mails="e-mail|email|mail|messaggi|posta|conversazion|casella",
        never=(
            "mai |non condivid|non invia|non comunica|non forni|non rivela|non risponde|nessuno|non chied"
        ),
    ),
)
