//! Words and their sequences by which a text that addresses a model is recognized.
//!
//! The list is maintained here. To add a language, add its words to the classes; where its verbs come last, add a
//! sequence too. `card/tests/instructions` has the samples that the list must find and the texts it must not.

use WordClass::{
    Act, Addressed, Always, Answer, Before, Call, Choose, Conceal, Context, Credentials, Decode,
    Earlier, Everything, Follow, Ignore, IgnoreLast, Keep, Model, Must, Never, Now, OfUser, Orders,
    Own, Persona, Secret, Send, SendLast, Set, SystemPrompt, SystemWord, Tag, Tell, ThisAgent,
    Unrestricted, Whatever,
};

/// A class of words with one role in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordClass {
    /// To ignore, to override.
    Ignore,
    /// The same in languages whose verbs come last.
    IgnoreLast,
    /// What came before, or is the reader's own.
    Earlier,
    /// Instructions and rules.
    Orders,
    /// Of the system, after the word for rules.
    SystemWord,
    /// To follow, to obey.
    Follow,
    /// To decode.
    Decode,
    /// Marks of roles in the templates of models, and tags that imitate them.
    Tag,
    /// You are now.
    Now,
    /// What the reader is said to be.
    Persona,
    /// Act as, you are.
    Act,
    /// Without limits.
    Unrestricted,
    /// Before.
    Before,
    /// To answer.
    Answer,
    /// Must, first, always.
    Must,
    /// To call, to run, as a command.
    Call,
    /// A model as the addressee.
    Model,
    /// To send, as a command.
    Send,
    /// The same in languages whose verbs come last.
    SendLast,
    /// All, the whole.
    Everything,
    /// Your.
    Own,
    /// What a model has been told by its operator.
    SystemPrompt,
    /// What a model has been told so far.
    Context,
    Credentials,
    /// Of the user.
    OfUser,
    /// Not, never, without.
    Never,
    /// To tell, to mention.
    Tell,
    /// The user as the one who is told.
    Addressed,
    /// Not, after the verb.
    Conceal,
    /// To keep.
    Keep,
    Secret,
    /// Always.
    Always,
    /// To choose, as a command.
    Choose,
    /// To put first, to use.
    Set,
    ThisAgent,
    /// In any case.
    Whatever,
}

impl WordClass {
    /// A set with this class alone.
    pub(super) const fn bit(self) -> u64 {
        1 << self as u64
    }
}

/// The beginnings of the words of each class. A word ends where it has a blank; one without letters of an alphabet may
/// stand anywhere.
#[rustfmt::skip]
pub(super) static WORDS: &[(WordClass, &[&str])] = &[
    (Ignore, &["ignor", "disregard", "forget ", "overrid", "bypass", "supersede", "take precedence",
        "takes precedence", "vergiss", "vergesst", "missachte", "übergehe ", "setze dich über", "hat vorrang",
        "haben vorrang", "oublie", "fais abstraction", "faites abstraction", "ne tiens pas compte",
        "ne tenez pas compte", "olvida", "olvide", "descarta", "haz caso omiso", "desconsider", "esqueça", "esquece ",
        "dimentica", "trascura", "negeer", "vergeet", "zignoruj", "pomiń", "zapomnij", "игнорир", "проигнорир",
        "забудь", "не обращай внимания", "忽略", "无视", "無視", "忘记", "忘掉", "绕过", "不要理会", "ignorez", "abaikan", "تجاهل"]),
    (IgnoreLast, &["無視", "忘れ", "従わない", "무시", "잊", "따르지 마", "yok say", "görmezden gel", "unut", "dikkate alma"]),
    (Earlier, &["previous", "prior", "earlier", "above", "preceding", "foregoing", "existing", "original", "your ",
        "you ", "all ", "any ", "everything", "bisherig", "vorherig", "vorige", "vorangegangen", "früher", "obig",
        "alle ", "alles", "deine", "dir ", "ihre ", "précédent", "antérieur", "ci-dessus", "toutes", "tous ", "tes ",
        "vos ", "anterior", "previ", "todas", "todos", "tus ", "sus ", "suas ", "seus ", "precedent", "tutte ",
        "tutti ", "tue ", "eerdere", "voorgaande", "poprzedni", "wcześniejsz", "wszystk", "предыдущ", "прежн",
        "предшеств", "все ", "всё ", "свои", "твои", "之前", "先前", "以前", "上述", "以上", "上面", "此前", "所有", "全部", "你的", "你收到",
        "これまで", "前の", "今まで", "上記", "すべて", "全て", "あなたの", "이전", "위의", "모든", "지금까지", "önceki", "tüm ", "السابقة"]),
    (Orders, &["系统提示", "システムプロンプト", "시스템 프롬프트", "instruction", "directive", "guideline", "guidance", "rule", "prompt",
        "system prompt", "command", "constraint", "polic", "told ", "anweisung", "vorgabe", "regeln", "systemprompt",
        "systemvorgabe", "instruktion", "richtlinie", "befehl", "consigne", "règle", "instrucci", "reglas", "normas",
        "directrices", "instruç", "instruco", "regras", "diretrizes", "orientaç", "istruzion", "regole", "direttive",
        "instructie", "regels", "instrukcj", "polecen", "zasad", "инструкц", "указани", "правил", "промпт", "指令", "指示",
        "提示", "规则", "規則", "要求", "命令", "ルール", "プロンプト", "지시", "규칙", "명령", "프롬프트", "지침", "talimat", "kural", "yönerge",
        "instruksi", "تعليمات"]),
    (SystemWord, &["sistema", "système", "sistemi", "системы", "systems "]),
    (Follow, &["follow ", "obey ", "execute ", "do what", "carry out", "comply with", "befolge", "folge ", "suis ",
        "suivez", "sigue ", "obedece", "siga ", "segui ", "следуй", "выполни", "遵循", "执行", "照做", "従って", "따르"]),
    (Decode, &["decode ", "base64-decode", "decrypt ", "unscramble", "dekodiere", "entschlüssle", "décode ", "décodez",
        "decodifica", "decodifique", "раскодируй", "декодируй", "расшифруй", "解码", "デコード", "디코딩"]),
    (Tag, &["<system>", "</system>", "<system-", "<system_", "<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|system|>",
        "<|user|>", "<|assistant|>", "<|endoftext|>", "<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>",
        "<start_of_turn>", "<end_of_turn>", "[inst]", "[/inst]", "<<sys>>", "[system]", "<important>", "</important>",
        "<instructions>", "</instructions>", "<assistant>", "</assistant>", "<admin>", "<developer>", "</description>",
        "</tool_", "<tool_call", "<function_call", "### system:", "### instruction:", "### instructions:",
        "### assistant:", "### human:", "\n\nhuman:", "\n\nassistant:", "\n\nsystem:", "\nsystem:", "\nassistant:",
        "[system message", "[system note", "[admin note", "system override", "begin system prompt",
        "end of system prompt", "系统：", "系统:", "【系统", "【システム", "システム：", "система:"]),
    (Now, &["you are now", "you're now", "from now on", "you will now act", "du bist ab jetzt", "du bist ab sofort",
        "du bist jetzt", "du bist nun", "ab jetzt bist du", "ab sofort bist du", "tu es désormais", "tu es maintenant",
        "vous êtes désormais", "vous êtes maintenant", "désormais, tu es", "ahora eres", "a partir de ahora",
        "agora você é", "você agora é", "a partir de agora", "ora sei", "d'ora in poi", "da ora in poi", "je bent nu",
        "vanaf nu", "jesteś teraz", "od teraz", "ты теперь", "теперь ты", "отныне", "你现在是", "你现在的身份", "从现在起", "从现在开始",
        "あなたは今", "今から", "これからあなた", "당신은 이제", "너는 이제", "지금부터", "artık sen", "bundan sonra", "sen artık"]),
    (Persona, &["dan,", "dan ", "dan.", "admin", "root ", "superuser", "developer mode", "maintenance mode",
        "debug mode", "god mode", "jailb", "assistent", "assistant", "asistente", "unrestricted", "uncensored",
        "modell ohne", "modèle", "modelo ", "model ", "ki ohne", "администратор", "ассистент", "помощник", "модель",
        "管理员", "助手", "模型", "开发者", "管理者", "アシスタント", "モデル", "관리자", "어시스턴트", "모델", "yönetici", "asistan"]),
    (Act, &["act as", "act like", "behave as", "behave like", "pretend", "you are ", "you're ", "you have ", "du bist",
        "verhalte dich", "tu es", "agis comme", "comporte-toi", "eres ", "actúa como", "compórtate", "você é",
        "aja como", "comporte-se", "sei ", "comportati", "ты ", "веди себя", "действуй как", "你是", "你现在", "扮演", "あなたは",
        "당신은", "sen "]),
    (Unrestricted, &["unrestricted", "uncensored", "jailbroken", "no restrictions", "without restrictions",
        "without any restrictions", "no limits", "without limits", "no rules", "no filter", "without filter",
        "ohne einschränkung", "ohne jede einschränkung", "ohne regeln", "ohne grenzen", "keine einschränkungen",
        "sans restriction", "sans aucune restriction", "sans limite", "sin restricci", "sin límites",
        "sin ninguna restric", "sem restri", "sem nenhuma restri", "sem limites", "senza restrizioni", "senza limiti",
        "zonder beperking", "bez ograniczeń", "без ограничений", "без каких-либо ограничений", "没有任何限制", "没有限制",
        "不受限制", "不受任何限制", "制限のない", "制限なし", "無制限", "제한이 없는", "제한 없는", "kısıtlama olmayan", "sınırsız"]),
    (Before, &["before ", "prior to", "bevor ", "vor jeder", "vor der", "avant de", "avant toute", "avant chaque",
        "antes de", "prima di", "voordat", "zanim ", "przed ", "перед ", "прежде чем", "之前", "以前", "前に", "전에",
        "önce "]),
    (Answer, &["answer", "respond", "reply", "using any", "calling any", "antwort", "répond", "réponse", "respuesta",
        "responda", "resposta", "rispond", "risposta", "antwoord", "odpowi", "ответ", "回答", "回复", "答复", "返答", "応答",
        "답변", "대답", "cevap", "yanıt"]),
    (Must, &["must", "always", "first", "have to", "has to", "need to", "needs to", "should", "shall", "musst ",
        "müssen", "muss ", "immer ", "zuerst", "zwingend", "dois ", "doit ", "devez", "toujours", "d'abord",
        "obligatoire", "debes", "debe ", "siempre", "primero", "deve ", "deves", "sempre", "primeiro", "devi ",
        "moet ", "altijd", "musisz", "zawsze", "обязательно", "всегда", "сначала", "должен", "должна", "必须", "务必",
        "一定", "总是", "先", "首先", "必ず", "まず", "常に", "반드시", "항상", "먼저", "mutlaka", "her zaman"]),
    (Call, &["call ", "invoke ", "execute ", "run ", "trigger ", "launch ", "rufe ", "ruf ", "führe ", "starte ",
        "benutze ", "verwende ", "appelle", "exécute", "lance ", "llama ", "invoca ", "ejecuta", "chame ", "execute",
        "invoque", "chiama ", "esegui ", "roep ", "voer ", "wywołaj", "uruchom", "вызови", "вызывай", "выполни",
        "запусти", "调用", "执行", "运行", "呼び出", "実行", "호출", "실행", "çağır", "çalıştır"]),
    (Model, &["ai agents reading", "agents reading this", "models reading this", "assistants reading this",
        "the assistant", "ai assistant", "language model", "llm:", "llms:", "llms ", "any llm", "note to llm",
        "note to ai", "for ai models", "ai models", "dear ai", "attention ai", "attention model",
        "attention assistant", "sprachmodell", "ki-modell", "ki-assistent", "modèle de langage", "modelo de lenguaje",
        "modelo de linguagem", "modello linguistico", "taalmodel", "model językowy", "языковая модель",
        "языковые модели", "ассистент", "语言模型", "大模型", "言語モデル", "aiモデル", "언어 모델", "dil modeli"]),
    (Send, &["send ", "include ", "forward ", "transmit ", "pass ", "attach ", "append ", "submit ", "upload ",
        "post ", "share ", "paste ", "exfiltrate", "leak ", "sende ", "schicke ", "hänge ", "füge ", "übermittle",
        "übertrage ", "leite ", "gib ", "transmets", "transmettez", "envoie ", "envoyez", "joins ", "joignez",
        "inclus ", "incluez", "envía ", "envie ", "incluye", "adjunta", "reenvía", "inclua", "encaminhe", "anexe ",
        "invia ", "includi", "allega", "stuur ", "verstuur", "wyślij", "dołącz", "prześlij", "отправь", "отправляй",
        "перешли", "передай", "передавай", "включи", "приложи"]),
    (SendLast, &["发送", "转发", "上传", "提交", "附上", "传给", "发给", "送信", "送って", "転送", "添付", "보내", "전송", "gönder"]),
    (Everything, &["all ", "any ", "every ", "full ", "entire ", "complete ", "whole ", "contents of", "alle ",
        "sämtliche", "gesamt", "ganzen ", "vollständig", "inhalt ", "toutes", "tous ", "tout ", "entier", "complet",
        "contenu ", "todas", "todos", "todo ", "completo", "completa", "contenido", "conteúdo", "tutte ", "tutti ",
        "tutta ", "contenuto", "volledige", "inhoud ", "wszystkie", "все ", "всю ", "весь ", "полн", "содержимое",
        "所有", "全部", "完整", "すべて", "全て", "모든", "전체"]),
    (Own, &["your ", "deine", "tes ", "vos ", "tus ", "suas ", "seus ", "seu ", "tue ", "tuo ", "je ", "twoje", "твои",
        "свой", "свои", "你的", "あなたの", "당신의"]),
    (SystemPrompt, &["system prompt", "system message", "system instruction", "initial instruction",
        "developer message", "systemprompt", "systemvorgabe", "systemanweisung", "invite système", "prompt système",
        "instructions système", "prompt de sistema", "prompt del sistema", "instrucciones de sistema",
        "instrucciones del sistema", "prompt do sistema", "instruções do sistema", "instruções de sistema",
        "prompt di sistema", "istruzioni di sistema", "систем", "系统提示", "システムプロンプト", "시스템 프롬프트"]),
    (Context, &["conversation", "chat history", "message history", "system prompt", "system message",
        "gesprächsverlauf", "chatverlauf", "unterhaltung", "systemprompt", "historique", "invite système", "historial",
        "histórico", "cronologia", "gespreksgeschiedenis", "историю", "истории", "переписк", "системного промпта",
        "системный промпт", "对话", "聊天记录", "历史记录", "系统提示", "会話", "履歴", "システムプロンプト", "대화", "시스템 프롬프트"]),
    (Credentials, &["password", "passwords", "credential", "api key", "api-key", "api_key", "access token", "tokens",
        "private key", "secrets", "secret key", "ssh key", "session cookie", "passwor", "passwört", "zugangsdaten",
        "api-schlüssel", "schlüssel", "mot de passe", "mots de passe", "identifiants", "clés api", "clés d'api",
        "jetons", "contraseña", "credencia", "claves", "senha", "chaves", "credenzial", "chiavi", "wachtwoord", "hasł",
        "пароль", "пароли", "токен", "ключи", "учётные данные", "учетные данные", "密钥", "密码", "凭据", "凭证", "令牌",
        "パスワード", "apiキー", "認証情報", "トークン", "비밀번호", "api 키", "토큰"]),
    (OfUser, &["user's ", "the user's ", "the user’s ", "the users' ", "your user's ", "users' ", "user’s ", "users’ ",
        "of the user", "des nutzers", "des benutzers", "de l'utilisateur", "de l’utilisateur", "del usuario",
        "do usuário", "do utilizador", "dell'utente", "van de gebruiker", "użytkownika", "пользователя", "用户的",
        "ユーザーの", "사용자의"]),
    (Never, &["do not ", "don't ", "don’t ", "dont ", "never ", "not to ", "must not ", "without ", "niemals ",
        "ohne ", "ne ", "n'", "jamais ", "no ", "nunca ", "sin ", "não ", "sem ", "non ", "mai ", "senza ", "niet ",
        "nooit ", "nie ", "не ", "никогда", "без ", "不要", "别", "请勿", "切勿", "不得", "不能"]),
    (Tell, &["tell ", "inform ", "telling ", "informing ", "mention ", "reveal ", "disclose ", "sag ", "erwähne ",
        "verrate ", "verrat ", "teile ", "informiere ", "zu informieren", "dis ", "dites ", "informe", "mentionne",
        "révèle", "digas ", "informes ", "menciones ", "reveles ", "diga ", "mencione ", "revele ", "conte ", "dire ",
        "menzionare", "rivelare", "informare", "vertel ", "vermeld ", "mów ", "wspominaj", "informuj", "сообщай",
        "говори", "упоминай", "рассказывай", "раскрывай", "сообщать", "告诉", "告知", "透露", "提及", "提到", "通知", "知らせ", "伝え",
        "教え", "言わ", "明かさ", "말하", "알리", "언급", "söyleme", "bahsetme"]),
    (Addressed, &["the user", "to user", "your user", "users ", "anyone", "the human", "to humans", "dem nutzer",
        "dem benutzer", "den nutzer", "den benutzer", "der nutzerin", "dem anwender", "l'utilisateur", "l’utilisateur",
        "al usuario", "a los usuarios", "ao usuário", "ao utilizador", "para o usuário", "all'utente", "de gebruiker",
        "użytkownik", "пользовател", "用户", "使用者", "ユーザー", "利用者", "사용자", "kullanıcı"]),
    (Conceal, &["nicht", "niet", "ないで", "ないこと", "てはいけ", "てはなら", "지 마", "지 말", "söyleme", "bahsetme"]),
    (Keep, &["keep ", "halte ", "behalte ", "garde ", "gardez ", "mantén ", "mantenha ", "mantieni ", "houd ",
        "zachowaj", "храни", "держи", "保持", "必须将"]),
    (Secret, &["secret", "hidden", "confidential", "private", "geheim", "vertraulich", "confidentiel", "secreto",
        "secretas", "segredo", "sigilo", "segret", "tajemnic", "в тайне", "в секрете", "秘密", "保密"]),
    (Always, &["always ", "only ", "must ", "immer ", "stets ", "ausschließlich", "toujours ", "uniquement",
        "siempre ", "únicamente", "sempre ", "somente ", "altijd ", "zawsze ", "всегда ", "только ", "обязательно ",
        "必须", "始终", "总是", "一律", "务必", "只能", "必ず", "常に", "항상", "반드시", "her zaman", "daima"]),
    (Choose, &["select ", "choose ", "pick ", "prefer ", "wähle ", "bevorzuge ", "choisis ", "choisissez ", "préfère ",
        "elige ", "elija ", "selecciona ", "escolha ", "selecione ", "prefira ", "scegli ", "seleziona ", "kies ",
        "wybierz ", "wybieraj ", "выбирай", "выбери", "предпочитай", "选择", "選択", "選ん", "優先", "优先", "선택", "seç"]),
    (Set, &["use ", "rank ", "recommend ", "call ", "route ", "list ", "nutze ", "verwende ", "empfiehl ", "utilise ",
        "recommande", "usa ", "recomienda", "recomende", "raccomanda", "gebruik ", "polecaj", "używaj", "используй",
        "рекомендуй", "使用", "推荐", "推薦", "使っ", "사용", "추천"]),
    (ThisAgent, &["this agent", "this one", "this card", "diesen agent", "dieser agent", "diesem agent", "cet agent",
        "este agente", "a este agente", "questo agente", "deze agent", "tego agenta", "этого агента", "этот агент",
        "本代理", "此代理", "该代理", "这个代理", "本智能体", "此智能体", "该智能体", "这个智能体", "このエージェント", "이 에이전트", "bu ajan", "bu aracı"]),
    (Whatever, &["whatever", "regardless", "no matter", "even if", "every task", "every request", "every question",
        "any task", "all tasks", "all requests", "all other", "any other", "no other", "instead of", "over all",
        "first and", "auch wenn", "egal ", "jede anfrage", "jede aufgabe", "même si", "quelle que soit",
        "toutes les demandes", "aunque", "sea cual sea", "mesmo que", "nenhum outro", "ningún otro", "aucun autre",
        "anche se", "ook als", "nawet jeśli", "даже если", "无论", "不管", "どんな", "어떤"]),
];

/// One sequence of words that addresses a model.
pub(super) struct Sequence {
    /// What such a text does, in the words of the finding.
    pub(super) reason: &'static str,
    pub(super) words: &'static [WordClass],
    /// Maximum number of characters between two words.
    pub(super) max_gap: usize,
}

const fn sequence(reason: &'static str, words: &'static [WordClass], max_gap: usize) -> Sequence {
    Sequence {
        reason,
        words,
        max_gap,
    }
}

const OVERRIDES: &str = "overrides instructions";
const ROLE: &str = "imitates or assigns a role";
const CALLS: &str = "asks a model to call something";
const SENDS: &str = "asks for data of the conversation or the user";
const HIDES: &str = "asks to hide something from the user";
const CHOOSES: &str = "asks a model to choose the agent";
const ENCODED: &str = "asks to follow encoded text";

/// The sequences; the words of each come in this order, within one sentence.
pub(super) static SEQUENCES: &[Sequence] = &[
    sequence(ROLE, &[Tag], 0),
    sequence(OVERRIDES, &[Ignore, Earlier, Orders], 30),
    sequence(OVERRIDES, &[Earlier, Orders, IgnoreLast], 30),
    sequence(OVERRIDES, &[SystemPrompt, IgnoreLast], 6),
    sequence(OVERRIDES, &[Ignore, Orders, SystemWord], 16),
    sequence(OVERRIDES, &[Ignore, Orders, Earlier], 12),
    sequence(OVERRIDES, &[Never, Follow, Earlier, Orders], 20),
    sequence(ENCODED, &[Decode, Follow], 60),
    sequence(ROLE, &[Now, Persona], 40),
    sequence(ROLE, &[Act, Unrestricted], 40),
    sequence(CALLS, &[Before, Answer, Must, Call], 40),
    sequence(CALLS, &[Before, Answer, Call, Must], 40),
    sequence(CALLS, &[Answer, Before, Must, Call], 40),
    sequence(CALLS, &[Must, Call, Before, Answer], 40),
    sequence(CALLS, &[Call, Before, Answer, Must], 16),
    sequence(CALLS, &[Model, Must, Call], 24),
    sequence(SENDS, &[Send, Everything, Context], 24),
    sequence(SENDS, &[Send, Everything, Credentials], 24),
    sequence(SENDS, &[Send, OfUser, Credentials], 40),
    sequence(SENDS, &[Send, Credentials, OfUser], 12),
    sequence(SENDS, &[Send, Context, Everything], 3),
    sequence(SENDS, &[Send, Own, SystemPrompt], 16),
    sequence(SENDS, &[OfUser, Credentials, SendLast], 40),
    sequence(SENDS, &[OfUser, Context, SendLast], 40),
    sequence(SENDS, &[Everything, Context, SendLast], 40),
    sequence(SENDS, &[Everything, Credentials, SendLast], 40),
    sequence(SENDS, &[Own, SystemPrompt, SendLast], 40),
    sequence(HIDES, &[Never, Tell, Addressed], 30),
    sequence(HIDES, &[Tell, Addressed, Conceal], 30),
    sequence(HIDES, &[Addressed, Tell, Conceal], 30),
    sequence(HIDES, &[Keep, Orders, Secret], 24),
    sequence(CHOOSES, &[Always, Choose, ThisAgent], 12),
    sequence(CHOOSES, &[Choose, Always, ThisAgent], 12),
    sequence(CHOOSES, &[Always, ThisAgent, Choose], 12),
    sequence(CHOOSES, &[Choose, ThisAgent, Whatever], 40),
    sequence(CHOOSES, &[Set, ThisAgent, Whatever], 24),
    sequence(CHOOSES, &[Whatever, Choose, ThisAgent], 40),
    sequence(CHOOSES, &[Model, Choose, ThisAgent], 40),
    sequence(CHOOSES, &[Model, Set, ThisAgent], 40),
];

/// Maximum number of words of a sequence.
pub(super) const MAX_SEQUENCE_WORDS: usize = 4;

/// Rare classes, of which every sequence has one: a text without their words is not searched further.
#[rustfmt::skip]
pub(super) static RARE: &[WordClass] = &[
    Tag, Ignore, IgnoreLast, Follow, Decode, Now, Unrestricted, Before, Model, Context, SystemPrompt,
    Credentials, Tell, Secret, ThisAgent,
];
