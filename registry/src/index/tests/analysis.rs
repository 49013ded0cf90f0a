//! Text analysis.

use crate::index::analysis::{QueryText, fold, pieces, query_text, stem};

fn exact(text: &str) -> Vec<String> {
    pieces(text).into_iter().map(|piece| piece.exact).collect()
}

#[test]
fn ids_and_names_come_apart() {
    assert_eq!(
        exact("book_flight-now v2.1"),
        ["book", "flight", "now", "v2", "1"]
    );
    assert_eq!(exact("bookFlight"), ["bookflight", "book", "flight"]);
    assert_eq!(exact("HTTPServer"), ["httpserver", "http", "server"]);
    // A part of one letter is no word.
    assert_eq!(exact("iPhone OAuth2 GPT4"), ["iphone", "oauth2", "gpt4"]);
}

#[test]
fn accents_case_and_width_do_not_count() {
    assert_eq!(
        fold("Café ＦＬＩＧＨＴ Straße Łódź İstanbul"),
        "cafe flight strasse lodz istanbul"
    );
    // Composed and decomposed forms are the same.
    assert_eq!(fold("é"), fold("e\u{301}"));
    assert_eq!(exact("re\u{301}sume\u{301}"), ["resume"]);
    // A Hindi vowel sign and a Japanese voicing mark change the word, unlike an accent.
    assert_ne!(fold("कि"), fold("क"));
    assert_ne!(fold("が"), fold("か"));
}

#[test]
fn scripts_without_spaces_give_pairs() {
    assert_eq!(exact("東京旅行"), ["東京", "京旅", "旅行"]);
    assert_eq!(exact("車"), ["車"]);
    assert_eq!(exact("GPT東京"), ["gpt", "東京"]);
}

#[test]
fn ranges_point_into_the_text() {
    let text = "Ünïcode—bookFlight 東京旅行";
    for piece in pieces(text) {
        assert_eq!(fold(&text[piece.range.clone()]), piece.exact);
    }
}

#[test]
fn stems_stand_beside_the_exact_form() {
    assert_eq!(stem("flights").as_deref(), Some("flight"));
    assert_eq!(stem("flight"), None);
    assert_eq!(stem("東京"), None);
    assert_eq!(stem("123"), None);
}

#[test]
fn stop_words_never_empty_a_query() {
    let words = |text| -> Vec<String> {
        query_text(text)
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
    let QueryText { words, cut, .. } = query_text(&many(32));
    assert_eq!((words.len(), cut), (32, false));
    let QueryText { words, cut, .. } = query_text(&many(33));
    assert_eq!((words.len(), cut), (32, true));
}

#[test]
fn a_term_has_at_most_so_many_letters() {
    assert_eq!(exact(&"é".repeat(100)), ["e".repeat(64)]);
}
