//! Cards and queries in other languages than English.

use super::*;
use crate::languages::{LanguageSet, detect_card_languages, detect_query_languages};
use crate::text_folding::fold_text;

fn described(number: u64, description: &str) -> AgentDocument {
    AgentDocument {
        description: description.to_owned(),
        ..agent(number, "Nameless")
    }
}

const GERMAN: &str = "Kann Rechnungen prüfen, bevor sie gebucht werden, und erinnert an die Überstunden der Beschäftigten.";
const FRENCH: &str =
    "Réserve des billets de train pour les voyageurs et prévient en cas de retard ou d'annulation.";
const SPANISH: &str =
    "Ayuda a recurrir las multas de tráfico y comprueba si la infracción ha prescrito ya.";
const PORTUGUESE: &str =
    "Emite notas fiscais e não cobra nada dos clientes que já têm uma conta, até o vencimento.";
const ENGLISH: &str =
    "Books flights for people who travel to Rio de Janeiro, La Paz and the Côte d'Azur.";
const RUSSIAN: &str = "Прогноз погоды по городам, предупреждения о гололёде и сильном ветре.";
const ARABIC: &str = "يترجم العقود والوثائق الرسمية ترجمةً قانونيةً معتمدة";
const JAPANESE: &str = "全国の温泉旅館を探して予約するエージェントです。レシートも読み取ります。";
const TRADITIONAL: &str = "自動歸戶雲端發票，中獎時通知";
const KOREAN: &str = "날씨 예보와 미세먼지 농도를 안내합니다";

#[test]
fn sentences_tell_their_language() {
    let letters = |texts: &[&str]| detect_card_languages(texts.iter().copied()).language_letters();
    for (text, expected) in [
        (GERMAN, "g"),
        (FRENCH, "f"),
        (SPANISH, "s"),
        (PORTUGUESE, "p"),
        (ENGLISH, ""),
        (RUSSIAN, ""),
        ("Rechnungen, Belege", ""),
        ("", ""),
    ] {
        assert_eq!(letters(&[text]), expected, "{text}");
    }
    assert_eq!(letters(&[GERMAN, FRENCH, ENGLISH]), "gf");
    // Only the beginning of long texts is read.
    let filler = "word ".repeat(4_000);
    assert_eq!(letters(&[&filler, GERMAN]), "");
    assert_eq!(LanguageSet::from_letters("gp").language_letters(), "gp");
}

#[test]
fn questions_tell_their_language_or_may_be_in_any() {
    let of = |text: &str| {
        let words: Vec<String> = text
            .split(' ')
            .map(|word| fold_text(word).into_owned())
            .collect();
        let found = detect_query_languages(words.iter().map(String::as_str));
        (
            found.possible.language_letters(),
            found.certain.language_letters(),
        )
    };
    let certain = |letter: &str| (letter.to_owned(), letter.to_owned());
    assert_eq!(of("wie viele Ueberstunden"), certain("g"));
    assert_eq!(of("trains supprimes avec billet"), certain("f"));
    assert_eq!(of("el piso alquilado"), certain("s"));
    assert_eq!(of("quem não pagou"), certain("p"));
    assert_eq!(of("where to find a hotel"), certain(""));
    assert_eq!(of("hotel tokyo"), ("gfsp".to_owned(), String::new()));
    // Words that also exist in English indicate no language.
    assert_eq!(
        of("red hat die casting"),
        ("gfsp".to_owned(), String::new())
    );
}

#[test]
fn words_are_found_in_the_forms_of_their_language() {
    let dir = tempfile::tempdir().unwrap();
    let texts = [
        GERMAN,
        FRENCH,
        SPANISH,
        PORTUGUESE,
        ENGLISH,
        RUSSIAN,
        ARABIC,
        JAPANESE,
        TRADITIONAL,
        KOREAN,
    ];
    let agents = (1..).zip(texts);
    let agents = agents
        .map(|(number, text)| described(number, text))
        .collect();
    let index = built(dir.path(), agents);
    for (query, expected) in [
        ("wer pruefte die Rechnung", 1),
        ("prüfen", 1),
        ("pruefen", 1),
        ("Beschaeftigter", 1),
        ("reserver", 2),
        ("annuler un voyage", 2),
        ("estoy recurriendo una multa", 3),
        ("infracciones", 3),
        ("nota fiscal", 4),
        ("cobrar um cliente", 4),
        ("flight", 5),
        ("города", 6),
        ("гололед", 6),
        ("погодой", 6),
        ("ترجمه معتمده", 7),
        ("عقود", 7),
        ("旅館を予約", 8),
        ("ﾚｼｰﾄ", 8),
        ("发票中奖", 9),
        ("發票", 9),
        ("주말날씨", 10),
    ] {
        let answer = index.search(&text(query)).unwrap();
        assert_eq!(ids(&answer).first(), Some(&id(expected)), "{query}");
        assert!(!answer.hits[0].highlights.is_empty(), "{query}");
    }
}

#[test]
fn a_stem_of_one_language_is_no_word_of_another() {
    let dir = tempfile::tempdir().unwrap();
    // The Spanish stem of `carta`, a letter, is `cart`.
    let agents = vec![
        described(1, "Fills the cart of people who shop on the web."),
        described(
            2,
            "Escribe una carta a los que no pagan, y espera la respuesta.",
        ),
    ];
    let index = built(dir.path(), agents);
    assert_eq!(names(&index, &text("cartas")), [id(2)]);
    assert_eq!(names(&index, &text("the cart of the shop")), [id(1)]);
    // Stems are not searched for, used as corrections, or suggested.
    assert_eq!(names(&index, &text("carrt")), [id(1)], "corrected");
    assert!(names(&index, &text("\u{1}scart")).is_empty());
    let answer = index.search(&text("scartz")).unwrap();
    assert!(answer.hits.is_empty());
    let near: Vec<String> = answer
        .hints
        .into_iter()
        .flat_map(|hint| hint.similar_words)
        .collect();
    assert!(near.iter().all(|word| !word.contains('\u{1}')), "{near:?}");
}

#[test]
fn stop_words_go_with_the_language_of_the_question() {
    let words = |text: &str| -> Vec<String> {
        let words = crate::analysis::analyze_query(text).words.into_iter();
        words.map(|word| word.exact).collect()
    };
    assert_eq!(
        words("wie hat mein Team Überstunden"),
        ["team", "uberstunden"]
    );
    assert_eq!(words("red hat"), ["red", "hat"]);
    assert_eq!(
        words("est-ce dangereux de mélanger ces deux cachets"),
        ["dangereux", "melanger", "deux", "cachets"]
    );
    assert_eq!(words("что с погодой"), ["погодои"]);
    assert_eq!(words("ほしいのは部屋"), ["は部", "部屋"]);
    assert_eq!(words("ほしいの"), ["ほし", "しい", "いの"]);
}

#[test]
fn the_languages_of_a_card_are_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![described(1, GERMAN)]);
    let hit = index.search(&text("Rechnung g")).unwrap().hits.remove(0);
    let shown: Vec<&str> = hit.highlights.iter().map(|one| one.field).collect();
    assert_eq!(shown, ["description"]);
}

#[test]
fn a_rare_stem_tells_no_more_than_the_word_that_many_cards_hold() {
    let dir = tempfile::tempdir().unwrap();
    // Only one card is German, so that the German stem of `agenda` is the rarest form of all.
    let mut agents: Vec<AgentDocument> = (1..20)
        .map(|number| described(number, "Keeps the agenda and the minutes of a meeting."))
        .collect();
    agents.push(described(
        20,
        "Die Agenda ist immer noch bei den Sitzungen, und sie wird jedem der Kollegen nach der Sitzung wieder geschickt, \
         damit er weiß, was er bis zum nächsten Termin noch zu tun hat, und auch, wer ihm dabei helfen kann.",
    ));
    let index = built(dir.path(), agents);
    let scores: Vec<(Uuid, f32)> = {
        let hits = index.search(&text("agenda minutes")).unwrap().hits;
        let scores = hits.iter().map(|hit| (hit.id, hit.score.unwrap()));
        scores.collect()
    };
    assert_ne!(scores[0].0, id(20));
    let of_german = scores.iter().find(|(agent, _)| *agent == id(20));
    // A word in all cards has almost no weight, whatever its stem.
    assert!(of_german.is_none_or(|(_, score)| *score < scores[0].1 / 4.0));
}

#[test]
fn the_reason_for_a_match_in_another_form_shows_the_word_of_the_card() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(
        dir.path(),
        vec![described(1, GERMAN), described(2, ENGLISH)],
    );
    let request = SearchRequest {
        explain: true,
        ..text("wer prüfte die Rechnung")
    };
    let hit = index.search(&request).unwrap().hits.remove(0);
    let summary = hit.explain.unwrap()["summary"].to_string();
    assert!(
        summary.contains("contains \\\"rechnungen\\\" for \\\"rechnung\\\""),
        "{summary}"
    );
    assert!(!summary.contains('\u{1}'), "{summary}");
}
