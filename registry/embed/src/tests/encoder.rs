//! Encoding of texts: against the reference, in batches, and truncated.

use serde::Deserialize;
use serde_json::json;

use super::*;

/// A text, with its expected vector from the script that created the model.
#[derive(Deserialize)]
struct Reference {
    text: String,
    tokens: Vec<u32>,
    vector: Vec<f32>,
}

fn references() -> Vec<Reference> {
    let bytes = std::fs::read(tiny().join("reference.json")).unwrap();
    let all: Vec<Reference> = serde_json::from_slice(&bytes).unwrap();
    assert!(all.len() >= 8);
    all
}

/// This many words of one token each.
fn words(count: usize) -> String {
    let words = ["find", "weather", "book", "data", "music"];
    let all = words.iter().cycle().take(count).copied();
    all.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn vectors_are_those_of_the_independent_computation() {
    let encoder = open(&tiny());
    assert_eq!(encoder.model_identity().dimensions, 32);
    assert_eq!(encoder.model_identity().name, "tiny");
    assert_eq!(
        (encoder.max_card_tokens(), encoder.pooling()),
        (96, Pooling::Mean)
    );
    for reference in references() {
        let found = vector(&encoder, &reference.text, TextKind::Card).await;
        let near = cosine(&found, &reference.vector);
        assert!(near >= 0.999_999, "{:?}: {near}", reference.text);
        if reference.tokens.len() <= MAX_QUERY_TOKENS {
            let query = vector(&encoder, &reference.text, TextKind::Query).await;
            assert_same(&query, &found);
        }
    }
}

#[tokio::test]
async fn vectors_have_unit_length() {
    let encoder = open(&tiny());
    let texts = references().into_iter().map(|reference| reference.text);
    let vectors = encoder
        .embed(texts.collect(), TextKind::Card)
        .await
        .unwrap();
    for vector in vectors {
        let length: f32 = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-5, "{length}");
    }
}

#[tokio::test]
async fn a_vector_does_not_depend_on_what_else_is_asked_for() {
    let encoder = open(&tiny());
    let mut texts: Vec<_> = references().into_iter().map(|one| one.text).collect();
    // More texts than the network processes at once, long and short ones mixed.
    texts.extend((0..MAX_TEXTS_PER_CALL - texts.len()).map(|count| words(count * 2)));
    for kind in [TextKind::Query, TextKind::Card] {
        let together = encoder.embed(texts.clone(), kind).await.unwrap();
        assert_eq!(together.len(), texts.len());
        for (text, together) in texts.iter().zip(&together) {
            assert_same(&vector(&encoder, text, kind).await, together);
        }
    }
}

#[tokio::test]
async fn queries_and_cards_are_cut_each_at_their_length() {
    let encoder = open(&tiny());
    let long = words(500);
    // The special tokens around a text count too.
    let query = vector(&encoder, &long, TextKind::Query).await;
    let card = vector(&encoder, &long, TextKind::Card).await;
    assert_same(&query, &vector(&encoder, &words(62), TextKind::Card).await);
    assert_other(&query, &vector(&encoder, &words(61), TextKind::Card).await);
    assert_same(&card, &vector(&encoder, &words(94), TextKind::Card).await);
    assert_other(&card, &query);
}

#[tokio::test]
async fn a_huge_text_is_looked_at_as_far_as_it_counts() {
    let encoder = open(&tiny());
    let huge = "find東".repeat(MAX_TEXT_BYTES);
    let cut = "find東".repeat(200);
    assert_same(
        &vector(&encoder, &huge, TextKind::Card).await,
        &vector(&encoder, &cut, TextKind::Card).await,
    );
}

#[tokio::test]
async fn stored_truncation_and_padding_count_for_nothing() {
    let copy = Altered::new();
    copy.set(
        "tokenizer.json",
        "truncation",
        json!({"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}),
    );
    copy.set(
        "tokenizer.json",
        "padding",
        json!({
            "strategy": {"Fixed": 128}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        }),
    );
    let encoder = copy.open();
    for reference in references() {
        let found = vector(&encoder, &reference.text, TextKind::Card).await;
        assert_same(&found, &reference.vector);
    }
}

#[tokio::test]
async fn texts_are_written_small_where_the_model_asks_for_it() {
    let copy = Altered::new();
    copy.change("tokenizer.json", |whole| {
        whole["normalizer"]["lowercase"] = json!(false);
    });
    let plain = open(&tiny());
    let expected = vector(&plain, "find agents", TextKind::Card).await;
    let other = vector(&copy.open(), "FIND Agents", TextKind::Card).await;
    assert_other(&other, &expected);
    copy.set("sentence_bert_config.json", "do_lower_case", json!(true));
    let small = vector(&copy.open(), "FIND Agents", TextKind::Card).await;
    assert_same(&small, &expected);
}

#[tokio::test]
async fn texts_stand_behind_the_prompts_of_the_model() {
    let plain = open(&tiny());
    let copy = Altered::new();
    let file = "config_sentence_transformers.json";
    for (written, query, card) in [
        (json!({}), "", ""),
        (json!({"prompts": {}, "default_prompt_name": null}), "", ""),
        (
            json!({"prompts": {"query": "search: ", "passage": "report: ", "corpus": "table"}}),
            "search: ",
            "report: ",
        ),
        (
            json!({"prompts": {"document": "data ", "news": "news "}, "default_prompt_name": "news"}),
            "news ",
            "data ",
        ),
    ] {
        copy.write(file, written.to_string());
        let prompted = copy.open();
        for (kind, prompt) in [(TextKind::Query, query), (TextKind::Card, card)] {
            let expected = vector(&plain, &format!("{prompt}a flight"), kind).await;
            assert_same(&vector(&prompted, "a flight", kind).await, &expected);
        }
    }
}

#[tokio::test]
async fn pooling_is_what_the_files_say() {
    let text = "find an agent that books flights";
    let mean = vector(&open(&tiny()), text, TextKind::Card).await;
    let copy = Altered::new();
    copy.write(
        "1_Pooling/config.json",
        r#"{"word_embedding_dimension": 32, "pooling_mode_mean_sqrt_len_tokens": true}"#,
    );
    assert_same(&vector(&copy.open(), text, TextKind::Card).await, &mean);
    let mut seen = vec![mean.clone()];
    for (settings, pooling) in [
        (r#"{"pooling_mode_cls_token": true}"#, Pooling::Cls),
        (r#"{"pooling_mode_max_tokens": true}"#, Pooling::Max),
    ] {
        copy.write("1_Pooling/config.json", settings);
        let encoder = copy.open();
        assert_eq!(encoder.pooling(), pooling);
        let found = vector(&encoder, text, TextKind::Card).await;
        seen.iter().for_each(|other| assert_other(&found, other));
        seen.push(found);
    }
    for (modern, index) in [(r#""cls""#, 1), (r#"["max"]"#, 2), (r#""mean""#, 0)] {
        let settings = format!(r#"{{"embedding_dimension": 32, "pooling_mode": {modern}}}"#);
        copy.write("1_Pooling/config.json", settings);
        assert_same(
            &vector(&copy.open(), text, TextKind::Card).await,
            &seen[index],
        );
    }
    // No file configures the pooling.
    copy.remove("1_Pooling/config.json");
    copy.remove("modules.json");
    copy.remove("sentence_bert_config.json");
    let encoder = copy.open();
    assert_eq!(
        (encoder.pooling(), encoder.max_card_tokens()),
        (Pooling::Mean, 128)
    );
    assert_same(&vector(&encoder, text, TextKind::Card).await, &mean);
}

#[tokio::test]
async fn weights_are_found_under_their_other_names() {
    let text = "translate this document";
    let expected = vector(&open(&tiny()), text, TextKind::Card).await;
    let copy = Altered::new();
    copy.change_weights(
        |name| {
            let name = name.replace("LayerNorm.weight", "LayerNorm.gamma");
            format!("bert.{}", name.replace("LayerNorm.bias", "LayerNorm.beta"))
        },
        |_| {},
    );
    assert_same(&vector(&copy.open(), text, TextKind::Card).await, &expected);
}

#[tokio::test]
async fn a_network_may_lie_in_a_folder_of_its_own() {
    let text = "translate this document";
    let expected = vector(&open(&tiny()), text, TextKind::Card).await;
    let copy = Altered::new();
    std::fs::create_dir(copy.path().join("0_Transformer")).unwrap();
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        let moved = copy.path().join("0_Transformer").join(file);
        std::fs::rename(copy.path().join(file), moved).unwrap();
    }
    copy.change("modules.json", |modules| {
        modules[0]["path"] = json!("0_Transformer");
    });
    assert_same(&vector(&copy.open(), text, TextKind::Card).await, &expected);
}

#[tokio::test]
async fn too_many_texts_are_refused_and_none_have_no_vectors() {
    let encoder = open(&tiny());
    let none = encoder.embed(Vec::new(), TextKind::Query).await;
    assert_eq!(none, Ok(Vec::new()));
    let many = vec![String::new(); MAX_TEXTS_PER_CALL + 1];
    let refused = encoder.embed(many, TextKind::Card).await;
    assert!(matches!(refused, Err(EmbedError::Failed(_))), "{refused:?}");
}
