//! Multilingual encoders: `XLM-RoBERTa`, and BERT with the tokenizer of `XLM-RoBERTa`.

use serde::Deserialize;
use serde_json::json;

use super::*;

/// A text, with its expected vectors from the script that created the model.
#[derive(Deserialize)]
struct Reference {
    text: String,
    vector: Vec<f32>,
    /// With positions counted from 0.
    as_bert: Vec<f32>,
}

fn references() -> Vec<Reference> {
    let bytes = std::fs::read(tiny_xlmr().join("reference.json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f32], text: &str) {
    let near = cosine(found, expected);
    assert!(near >= 0.999_999, "{text:?}: {near}");
}

#[tokio::test]
async fn an_xlm_roberta_gives_the_vectors_of_the_independent_computation() {
    let encoder = open(&tiny_xlmr());
    assert_eq!(encoder.model_identity().name, "tiny_xlmr");
    assert_eq!(encoder.max_card_tokens(), 96);
    for Reference {
        text,
        vector: expected,
        ..
    } in references()
    {
        let found = vector(&encoder, &text, TextKind::Card).await;
        assert_near(&found, &expected, &text);
    }
}

#[tokio::test]
async fn a_bert_with_a_tokenizer_of_type_unigram_loads_too() {
    let copy = Altered::of(&tiny_xlmr());
    copy.set("config.json", "model_type", json!("bert"));
    let encoder = copy.open();
    for Reference {
        text,
        as_bert,
        vector: as_roberta,
    } in references()
    {
        let found = vector(&encoder, &text, TextKind::Card).await;
        assert_near(&found, &as_bert, &text);
        assert_other(&found, &as_roberta);
    }
}

#[tokio::test]
async fn weights_of_a_roberta_are_found_under_its_name() {
    let Reference {
        text,
        vector: expected,
        ..
    } = references().remove(0);
    let copy = Altered::of(&tiny_xlmr());
    copy.change_weights(|name| format!("roberta.{name}"), |_| {});
    copy.set("config.json", "model_type", json!("roberta"));
    let found = vector(&copy.open(), &text, TextKind::Card).await;
    assert_near(&found, &expected, &text);
}

#[test]
fn positions_before_the_first_token_are_not_for_texts() {
    let copy = Altered::of(&tiny_xlmr());
    copy.remove("sentence_bert_config.json");
    assert_eq!(copy.open().max_card_tokens(), 128 - 2);
    copy.set("config.json", "pad_token_id", json!(119));
    assert_eq!(copy.open().max_card_tokens(), 8);
    for padding in [120, u32::MAX] {
        copy.set("config.json", "pad_token_id", json!(padding));
        let error = LocalEncoder::open(&copy.path(), EncoderOptions::default()).unwrap_err();
        let line = error.to_string();
        assert!(
            line.contains("pad_token_id") && line.contains("; "),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
    }
}
