//! Which questions an English model encodes, and which languages the vocabulary of a model shows.

use super::*;
use crate::languages::ModelLanguages;

/// Questions with foreign names and words, with terms of trades and of computing, and everyday ones.
const ENGLISH: &[&str] = &[
    "weather in Zürich tomorrow",
    "hotels in São Paulo",
    "flights from Málaga to Kraków",
    "best paella in Valencia",
    "things to do in La Paz",
    "restaurants near the Champs-Élysées",
    "who was Johann Wolfgang von Goethe",
    "opening hours of the Musée d'Orsay",
    "Los Angeles to Las Vegas by car",
    "book a table at Le Petit Bistro",
    "Rio de Janeiro carnival tickets",
    "translate this contract into German",
    "translate \"ich möchte ein Bier\" into English",
    "what does déjà vu mean",
    "review my résumé",
    "crème brûlée recipe",
    "weather San Juan de la Cruz",
    "Buenos Aires tango lessons",
    "El Niño forecast",
    "Côte d'Ivoire visa requirements",
    "jalapeño cheddar bread",
    "Kubernetes terraform helm",
    "sql",
    "security scanner",
    "pdf to markdown",
    "PostgreSQL query optimizer",
    "k8s log analysis",
    "stock price of Société Générale",
    "BMW und Mercedes comparison",
    "Deutsche Bank account opening",
    "Die Hard movie trivia",
    "Das Boot review",
    "war and peace summary",
    "Telekom invoice download",
    "Nestlé supplier audit",
    "find me an agent that can book a flight",
    "book keeping for small shops",
    "someone who brings cash along when I travel abroad",
    "turn speech into text",
    "can you fix this bug",
    "smart contract audit",
    "invoice OCR",
    "crypto portfolio tracker",
    "legal advice for tenants",
    "plan a wedding",
    "sewing lessons",
    "parking near the airport",
    "I need a doctor",
    "pet insurance",
    "image generator",
    "chat with my documents",
    "send an e-mail to a customer",
    "summarize meeting notes",
    "Jira comment update",
    "GitHub pull request review",
    "is it going to rain in Göteborg",
    "cheap trains Paris Lyon",
    "house for rent in Cádiz",
    "learn Spanish online",
    "Mandarin tutor",
    "how many meters is 100 feet",
    "ship a parcel to Łódź",
    "Malmö to Copenhagen ferry times",
    "pho restaurants in Hà Nội",
    "IBAN checker",
    "sushi in Kyōto",
    "Beyoncé lyrics",
    "van rental in Den Haag",
    "El Paso Electric bill",
    "San José del Cabo surf report",
    "Santa Fe art gallery",
    "Porto port wine tasting",
    "tax return for freelancers",
    "Rückversicherung meaning",
    "schadenfreude",
    "a la carte menu",
    "per diem rates",
    "pro bono lawyer",
    "ad hoc reporting",
    "de facto standard",
    "vis a vis",
    "quid pro quo detection",
    "die casting simulation",
    "mercado libre seller API",
    "banco santander loans",
    "casa in Tuscany",
    "zeitgeist report",
    "angst and burnout coach",
    "C++",
    ".NET dependency scan",
    "fur coat cleaning",
    "list my orders",
    "compare phone plans",
    "name a baby",
    "mad libs",
    "opening times Prado museum Madrid",
    "lasagne al forno recipe",
    "Dürer exhibition tickets",
    "salary calculator Zürich",
    "tapas bars in Sevilla",
    "wine from Bordeaux and Côtes du Rhône",
    "bus from Oaxaca to Puerto Escondido",
    "Hans Müller dentist reviews",
    "who painted Las Meninas",
    "Villa d'Este tour",
    "feng shui consultant",
    "sourdough starter help",
    "karate for kids",
    "remove background from a photo",
    "grade my essay",
    "OpenAPI schema validation",
    "Solidity auditor",
    "monitor uptime of my site",
    "convert EUR to PLN",
    "what is the capital of Côte d'Ivoire",
    "rent a Vespa in Roma",
    "Lidl opening hours",
    "IKEA Malm dresser assembly",
    "UNESCO sites in México",
    "Tchaikovsky concert",
    "à la mode dessert ideas",
    "Volkswagen dealer",
    "jobs in Düsseldorf",
    "Ubuntu kernel panic",
    "Toyota Prius battery",
];

/// Examples of published cards.
const CARD_EXAMPLES: &[&str] = &[
    "Define acceptance criteria for a risky UI workflow change.",
    "Generate portfolio risk report",
    "Trace ownership changes for this portfolio",
    "List all territories",
    "Track when a 2-hop path opens to a target person",
    "Correlate responder actions with alerts",
    "List all patents held by Company X",
    "Sequence GEOX seismic + WEALTH NPV for prospect eval",
    "awesome hello",
    "Convert 2 cups to ml",
    "What address is at 40.7128, -74.0060?",
    "Answer these questions",
    "config_change",
    "Is the customer frustrated?",
    "Demonstrate how to run asi_position_contrast",
    "Implement a small accepted feature with tests.",
    "Remove unnecessary identifiers for analytics",
    "echo hello world",
    "Engage a human in distress with WITNESS mode",
    "Generate insights from sales dashboard",
    "Evaluate risk for this high-value purchase",
    "What are the system requirements?",
    "Provide order status information",
    "Generate a spending summary for this month",
    "5-day forecast for Paris",
    "Dispatch audit task to A-AUDIT",
    "Analyze market trends for renewable energy",
    "How many 888_HOLDs were triggered this month?",
    "enthusiastic greeting",
    "Model risk assessment for investments",
    "Build component library in Figma",
    "Verify kernel not impersonating judge role",
    "What type of problem is this?",
    "Demonstrate how to run asi_intent_hear",
    "Verify that this payment went through",
    "Seal belief graph into VAULT999",
    "Complete checkout for this cart",
    "Submit an identity attestation for a verified agent",
    "Scan for identity package listings",
    "Create API endpoint for data access",
];

/// Questions of one language each.
const FOREIGN: &[(&str, &[&str])] = &[
    (
        "es",
        &[
            "buscar pisos en madrid",
            "tiempo en sevilla mañana",
            "necesito un abogado para un despido",
            "vuelos baratos a Tokio",
            "traducir un contrato al inglés",
            "¿quién me ayuda con la declaración de la renta?",
            "reservar mesa para dos esta noche",
            "resumir un documento largo",
            "reparar mi lavadora",
            "ideas para regalar a mi madre",
            "clases de guitarra para principiantes",
            "cambio de divisas",
        ],
    ),
    (
        "fr",
        &[
            "météo à Lyon demain",
            "trouver un appartement pas cher",
            "traduire un contrat en anglais",
            "réserver un billet de train",
            "je cherche un médecin près de chez moi",
            "qui peut m'aider à écrire une lettre de motivation",
            "résumer un texte",
            "comparer les assurances auto",
            "réparer mon vélo",
            "cours de guitare pour débutants",
            "idées cadeaux pour ma mère",
            "taux de change",
        ],
    ),
    (
        "de",
        &[
            "wetter morgen in berlin",
            "wohnung in hamburg mieten",
            "übersetze diesen Vertrag ins Englische",
            "wer hilft mir bei der Steuererklärung",
            "flug nach rom buchen",
            "was kann ich heute kochen",
            "Rechnungen prüfen",
            "jemand der Bargeld mitbringt wenn ich verreise",
            "günstige hotels",
            "waschmaschine reparieren",
            "gitarrenunterricht für anfänger",
            "geschenkideen für meine mutter",
            "wechselkurs",
        ],
    ),
    (
        "it",
        &[
            "che tempo fa domani a Roma",
            "prenotare un volo per Parigi",
            "cerco un appartamento in affitto",
            "tradurre un documento in inglese",
            "chi mi aiuta con le tasse",
            "ricetta per la carbonara",
            "riparare la lavatrice",
            "lezioni di chitarra per principianti",
            "idee regalo per mia madre",
        ],
    ),
    (
        "pt",
        &[
            "previsão do tempo para Lisboa",
            "quero reservar um voo",
            "traduzir um contrato para inglês",
            "procurar apartamento barato no Porto",
            "quem me ajuda com o imposto de renda",
            "nota fiscal da minha empresa",
            "consertar máquina de lavar",
            "aulas de violão para iniciantes",
            "ideias de presente para a mãe",
        ],
    ),
    (
        "nl",
        &[
            "goedkope vluchten naar Rome",
            "wat voor weer wordt het morgen",
            "vertaal dit contract naar het engels",
            "hulp bij mijn belastingaangifte",
            "woning huren in Utrecht",
            "wasmachine repareren",
            "gitaarles voor beginners",
            "cadeau voor mijn moeder",
        ],
    ),
    (
        "sv",
        &[
            "väder i Stockholm imorgon",
            "boka flyg till Paris",
            "översätt ett avtal till engelska",
            "hitta en billig lägenhet",
            "laga min tvättmaskin",
            "gitarrlektioner för nybörjare",
        ],
    ),
    (
        "da",
        &[
            "vejret i København i morgen",
            "bestil en flyrejse til Rom",
            "hjælp til min skat",
            "reparere min vaskemaskine",
        ],
    ),
    (
        "nb",
        &[
            "oversett dette dokumentet til engelsk",
            "finn en billig leilighet i Oslo",
            "hvordan blir været i helgen",
            "gave til min mor",
        ],
    ),
    (
        "pl",
        &[
            "pogoda w Warszawie jutro",
            "tanie loty do Londynu",
            "przetłumacz umowę na angielski",
            "szukam mieszkania w Krakowie",
            "naprawa pralki",
            "lekcje gry na gitarze dla początkujących",
        ],
    ),
    (
        "cs",
        &[
            "počasí v Praze zítra",
            "levné letenky do Říma",
            "přelož smlouvu do angličtiny",
            "oprava pračky",
            "dárek pro maminku",
        ],
    ),
    (
        "fi",
        &[
            "sää huomenna Helsingissä",
            "varaa lento Pariisiin",
            "etsin halpaa asuntoa",
            "pyykinpesukoneen korjaus",
            "lahja äidille",
        ],
    ),
    (
        "tr",
        &[
            "yarın hava nasıl olacak",
            "ucuz uçak bileti bul",
            "bu sözleşmeyi ingilizceye çevir",
            "çamaşır makinesi tamiri",
            "anneme hediye",
        ],
    ),
    (
        "hu",
        &[
            "milyen idő lesz holnap Budapesten",
            "olcsó repülőjegy Rómába",
            "mosógép javítás",
            "ajándék anyukámnak",
        ],
    ),
    (
        "ro",
        &[
            "vremea la București mâine",
            "caut un apartament ieftin",
            "reparații mașini de spălat",
        ],
    ),
    (
        "id",
        &[
            "cuaca besok di Jakarta",
            "cari tiket pesawat murah",
            "perbaiki mesin cuci",
        ],
    ),
    (
        "vi",
        &[
            "thời tiết Hà Nội ngày mai",
            "tìm vé máy bay rẻ",
            "sửa máy giặt",
        ],
    ),
    (
        "ru",
        &[
            "погода в Москве завтра",
            "найти дешевые билеты",
            "починить стиральную машину",
        ],
    ),
    ("uk", &["погода в Києві"]),
    ("el", &["καιρός στην Αθήνα αύριο"]),
    ("ar", &["الطقس في القاهرة غدا", "إصلاح الغسالة"]),
    ("he", &["מזג האוויר בתל אביב"]),
    ("hi", &["दिल्ली में कल का मौसम"]),
    ("ko", &["서울 내일 날씨", "세탁기 수리"]),
    (
        "ja",
        &["明日の東京の天気", "航空券を予約する", "洗濯機の修理"],
    ),
    ("zh", &["北京明天天气怎么样", "装修报价", "修理洗衣机"]),
    ("th", &["พรุ่งนี้ฝนตกไหม"]),
    ("bn", &["ঢাকার আবহাওয়া"]),
    ("ta", &["சென்னை வானிலை"]),
    ("ka", &["ამინდი თბილისში"]),
];

fn only(codes: &[&str]) -> ModelLanguages {
    let codes: Vec<String> = codes.iter().map(|code| (*code).to_owned()).collect();
    ModelLanguages::from_codes(&codes)
}

#[test]
fn an_english_model_encodes_english_questions_with_foreign_names() {
    let english = only(&["en"]);
    for question in ENGLISH.iter().chain(CARD_EXAMPLES) {
        assert!(english.cover_question(question), "{question}");
    }
}

#[test]
fn an_english_model_encodes_hardly_any_foreign_question() {
    let english = only(&["en"]);
    let questions = FOREIGN.iter().flat_map(|(_, questions)| *questions);
    let total = questions.clone().count();
    let encoded: Vec<_> = questions
        .filter(|question| english.cover_question(question))
        .collect();
    // What tells nothing about its language is encoded.
    assert!(
        encoded.len() * 100 <= total * 8,
        "{} of {total}: {encoded:?}",
        encoded.len()
    );
    for question in [
        "buscar pisos en madrid",
        "北京明天天气怎么样",
        "météo à Lyon demain",
        "wetter morgen in berlin",
    ] {
        assert!(!english.cover_question(question), "{question}");
    }
}

#[test]
fn a_model_of_several_languages_encodes_questions_in_each() {
    let codes = [
        "en", "de", "fr", "es", "pt", "it", "ru", "zh", "ja", "ko", "ar",
    ];
    let several = only(&codes);
    for (_, questions) in FOREIGN.iter().filter(|(code, _)| codes.contains(code)) {
        for question in *questions {
            assert!(several.cover_question(question), "{question}");
        }
    }
    for question in [
        "tanie loty do Londynu",
        "ucuz uçak bileti bul",
        "καιρός στην Αθήνα αύριο",
    ] {
        assert!(!several.cover_question(question), "{question}");
    }
    assert!(!only(&["de"]).cover_question("what is the weather in Hamburg"));
    assert!(!only(&["zh"]).cover_question("what is the weather in Hamburg"));
    assert!(only(&["en", "*"]).cover_question("ამინდი თბილისში"));
}

#[test]
fn what_is_no_language_is_encoded() {
    let english = only(&["en"]);
    for question in [
        "",
        "🚀",
        "404",
        "C++",
        "α and β in R",
        "ＨＯＴＥＬ",
        "𝗯𝗼𝗼𝗸 𝗮 𝗳𝗹𝗶𝗴𝗵𝘁",
    ] {
        assert!(english.cover_question(question), "{question}");
    }
    // Of a long question the beginning decides, and the end costs nothing.
    let long = format!("{}погода", "weather ".repeat(100_000));
    assert!(english.cover_question(&long));
    assert!(!english.cover_question(&"погода ".repeat(100_000)));
}

#[test]
fn codes_of_languages_are_recognized() {
    for code in ["en", "fil", "*"] {
        assert!(ModelLanguages::is_code(code), "{code}");
    }
    for text in ["", "e", "EN", "english", "pt-BR", "**"] {
        assert!(!ModelLanguages::is_code(text), "{text}");
    }
}

#[test]
fn a_vocabulary_shows_the_languages_of_its_model() {
    let english = open(&tiny()).model_languages();
    assert!(english.cover_question("find a flight to Rome"));
    for question in [
        "wohnung in hamburg mieten",
        "météo à Lyon demain",
        "погода в Москве",
        "北京明天天气怎么样",
    ] {
        assert!(!english.cover_question(question), "{question}");
    }
    let multilingual = open(&tiny_xlmr()).model_languages();
    for question in [
        "find a flight to Rome",
        "wohnung in hamburg mieten",
        "météo à Lyon demain",
        "погода в Москве",
    ] {
        assert!(multilingual.cover_question(question), "{question}");
    }
    // Its vocabulary has hardly any of these characters.
    assert!(!multilingual.cover_question("พรุ่งนี้ฝนตกไหม"));
}
