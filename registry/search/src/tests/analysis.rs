//! Text analysis: splitting, folding and stemming.

use crate::analysis::{AnalyzedQuery, IndexedWord, analyze_query, split_query_words};
use crate::languages::{LanguageSet, stem_by_script};
use crate::text_folding::fold_text;

fn pieces(text: &str) -> Vec<IndexedWord> {
    crate::analysis::indexed_words(text, LanguageSet::NONE)
}

fn exact(text: &str) -> Vec<String> {
    pieces(text).into_iter().map(|piece| piece.exact).collect()
}

fn asked(text: &str) -> Vec<String> {
    split_query_words(text).map(|piece| piece.exact).collect()
}

#[test]
fn ids_and_names_come_apart() {
    assert_eq!(
        exact("book_flight-now v2.1"),
        ["book", "flight", "now", "v2", "1"]
    );
    assert_eq!(exact("bookFlight"), ["bookflight", "book", "flight"]);
    assert_eq!(exact("HTTPServer"), ["httpserver", "http", "server"]);
    // A single letter is not a part of its own, and one before all others belongs to the next part.
    assert_eq!(
        exact("iPhone OAuth2 GPT4 gRPC eCommerce planA IDs"),
        [
            "iphone",
            "oauth2",
            "gpt4",
            "grpc",
            "ecommerce",
            "plana",
            "ids"
        ]
    );
    assert_eq!(exact("bookAFlight"), ["bookaflight", "book", "a", "flight"]);
    assert_eq!(exact("getXRay"), ["getxray", "get", "x", "ray"]);
    assert_eq!(exact("iPhoneApp"), ["iphoneapp", "iphone", "app"]);
    assert_eq!(exact("gRPCServer"), ["grpcserver", "grpc", "server"]);
    assert_eq!(exact("OAuth2Login"), ["oauth2login", "oauth2", "login"]);
}

#[test]
fn names_of_programming_keep_their_symbols() {
    assert_eq!(
        exact("C++17, C# and F#; g++ (c#) k8s"),
        ["c++", "17", "c#", "and", "f#", "g++", "c#", "k8s"]
    );
    assert_eq!(
        exact(".NET ASP.NET .net/.Net in example.net"),
        [
            ".net", "asp", ".net", ".net", ".net", "in", "example", "net"
        ]
    );
    assert_eq!(
        exact("Node.js NodeJS node.js. VueRouter.js"),
        [
            "nodejs",
            "node",
            "js",
            "nodejs",
            "node",
            "js",
            "nodejs",
            "node",
            "js",
            "vuerouterjs",
            "vue",
            "router",
            "js"
        ]
    );
    // None of these is such a name.
    assert_eq!(
        exact("i+1 a+ C#minor #c x.json .netrc internet.com é++ 東京.js"),
        [
            "i", "1", "a", "c", "minor", "c", "x", "json", "netrc", "internet", "com", "e", "东京",
            "东", "京", "js"
        ]
    );
    let text = "C# .NET";
    let ranges: Vec<_> = pieces(text).into_iter().map(|piece| piece.range).collect();
    assert_eq!(ranges, [0..2, 3..7]);
}

#[test]
fn accents_case_and_width_do_not_count() {
    assert_eq!(
        fold_text("Café ＦＬＩＧＨＴ Straße Łódź İstanbul"),
        "cafe flight strasse lodz istanbul"
    );
    // Composed and decomposed forms are equal.
    assert_eq!(fold_text("é"), fold_text("e\u{301}"));
    assert_eq!(exact("re\u{301}sume\u{301}"), ["resume"]);
    // Arabic without vowel signs and stretched lines, with one form of interchangeable letters; Russian without
    // optional dots; Chinese in simplified characters.
    assert_eq!(fold_text("جُرْعَةُ الأطفالِ"), fold_text("جرعه الاطفال"));
    assert_eq!(fold_text("مســاء"), fold_text("مساء"));
    assert_eq!(fold_text("Гололёд"), fold_text("гололед"));
    assert_eq!(fold_text("發票"), fold_text("发票"));
    // A Hindi vowel sign and a Japanese voicing mark change the word, unlike an accent.
    assert_ne!(fold_text("कि"), fold_text("क"));
    assert_ne!(fold_text("が"), fold_text("か"));
}

#[test]
fn scripts_without_spaces_give_pairs() {
    assert_eq!(asked("箱根旅行"), ["箱根", "根旅", "旅行"]);
    assert_eq!(asked("宿"), ["宿"]);
    assert_eq!(asked("GPT箱根"), ["gpt", "箱根"]);
    // Indexed text has each character as well, at the position of its pair.
    let indexed = pieces("新車両 x");
    let indexed: Vec<(&str, usize)> = indexed
        .iter()
        .map(|piece| (piece.exact.as_str(), piece.position))
        .collect();
    let expected = [
        ("新车", 0),
        ("新", 0),
        ("车両", 1),
        ("车", 1),
        ("両", 1),
        ("x", 2),
    ];
    assert_eq!(indexed, expected);
}

#[test]
fn marks_belong_to_the_character_before_them() {
    let guide = ["ガイ", "イド"];
    // Composed, half-width and decomposed forms.
    for written in ["ガイド", "ｶﾞｲﾄﾞ", "カ\u{3099}イト\u{3099}"] {
        assert_eq!(asked(written), guide, "{written}");
        assert_eq!(exact(written), exact("ガイド"), "{written}");
    }
    assert_eq!(asked("ﾊﾟ"), ["パ"]);
    // A Korean text in decomposed form, as some file systems store it.
    assert_eq!(
        asked("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}"),
        asked("한국어")
    );
}

#[test]
fn ranges_point_into_the_text() {
    let text = "Ünïcode—bookFlight bookAFlight 東京旅行 ｶﾞｲﾄﾞ";
    for piece in pieces(text) {
        assert_eq!(fold_text(&text[piece.range.clone()]), piece.exact);
    }
}

#[test]
fn stems_stand_beside_the_exact_form() {
    let stem = |word: &str| stem_by_script(word, &fold_text(word));
    assert_eq!(stem("flights").as_deref(), Some("flight"));
    assert_eq!(stem("flight"), None);
    assert_eq!(stem("東京"), None);
    assert_eq!(stem("123"), None);
}

#[test]
fn stop_words_never_empty_a_query() {
    let words = |text| -> Vec<String> {
        analyze_query(text)
            .words
            .into_iter()
            .map(|word| word.exact)
            .collect()
    };
    assert_eq!(
        words("find me an agent that can book a flight"),
        ["agent", "book", "flight"]
    );
    assert_eq!(words("to be or not to be"), ["to", "be", "or", "not"]);
    assert_eq!(words("?! …"), Vec::<String>::new());
    assert_eq!(words("Flight flight FLIGHT"), ["flight"]);
}

#[test]
fn a_query_has_at_most_so_many_words() {
    let many = |count: usize| {
        (0..count)
            .map(|number| format!("w{number}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let AnalyzedQuery {
        words,
        truncated: cut,
        ..
    } = analyze_query(&many(32));
    assert_eq!((words.len(), cut), (32, false));
    let AnalyzedQuery {
        words,
        truncated: cut,
        ..
    } = analyze_query(&many(33));
    assert_eq!((words.len(), cut), (32, true));
}

#[test]
fn a_term_has_at_most_so_many_letters() {
    assert_eq!(exact(&"é".repeat(100)), ["e".repeat(64)]);
}
