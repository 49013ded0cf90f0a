//! Checks of models: each error is one sentence that names the problem.

use serde_json::{Value, json};

use super::*;

/// The error of opening the model.
#[track_caller]
fn refusal(copy: &Altered) -> String {
    match LocalEncoder::open(&copy.path(), EncoderOptions::default()) {
        Ok(_) => panic!("the model was accepted"),
        Err(error) => error.to_string(),
    }
}

/// Changes the model and asserts that it is rejected in one line with these words.
#[track_caller]
fn assert_refused(change: impl FnOnce(&Altered), words: &[&str]) {
    let copy = Altered::new();
    change(&copy);
    let line = refusal(&copy);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("; "), "the error names no action: {line}");
    for word in words {
        assert!(line.contains(word), "{word:?} is not in {line:?}");
    }
}

#[test]
fn files_that_are_missing_are_named() {
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        assert_refused(|copy| copy.remove(file), &[file, "is missing"]);
    }
    assert_refused(
        |copy| copy.remove("1_Pooling/config.json"),
        &["1_Pooling/config.json", "is missing"],
    );
    let nowhere = tempfile::tempdir().unwrap().path().join("gone");
    let error = LocalEncoder::open(&nowhere, EncoderOptions::default()).unwrap_err();
    assert!(matches!(error, ModelError::Missing(_)), "{error}");
}

#[test]
fn files_that_are_no_json_are_named() {
    for file in FILES.iter().filter(|file| file.ends_with(".json")) {
        for text in ["", "{", "[1]", "\u{0}"] {
            assert_refused(|copy| copy.write(file, text), &[file]);
        }
    }
}

#[test]
fn sizes_are_bounded_and_fit() {
    for (member, value, word) in [
        ("hidden_size", json!(0), "1 to 4096"),
        ("hidden_size", json!(4097), "1 to 4096"),
        ("hidden_size", json!(31), "attention heads"),
        ("hidden_size", json!(64), "64"),
        ("hidden_size", json!(-1), "cannot be read"),
        ("num_attention_heads", json!(0), "num_attention_heads"),
        ("num_hidden_layers", json!(0), "num_hidden_layers"),
        ("num_hidden_layers", json!(1_000_000), "num_hidden_layers"),
        ("num_hidden_layers", json!(3), "encoder.layer.2"),
        ("intermediate_size", json!(0), "intermediate_size"),
        ("intermediate_size", json!(65), "intermediate"),
        (
            "max_position_embeddings",
            json!(4),
            "max_position_embeddings",
        ),
        ("max_position_embeddings", json!(512), "position_embeddings"),
        ("type_vocab_size", json!(0), "type_vocab_size"),
        ("type_vocab_size", json!(1), "token_type_embeddings"),
        ("vocab_size", json!(0), "vocab_size"),
        ("vocab_size", json!(u64::MAX), "vocab_size"),
        ("vocab_size", json!(100), "vocabulary of 100"),
        ("vocab_size", json!(5000), "word_embeddings"),
        ("layer_norm_eps", json!(-1.0), "layer_norm_eps"),
        ("layer_norm_eps", Value::Null, "cannot be read"),
    ] {
        assert_refused(|copy| copy.set("config.json", member, value), &[word]);
    }
    for length in [0, 7] {
        assert_refused(
            |copy| copy.set("sentence_bert_config.json", "max_seq_length", json!(length)),
            &["max_seq_length"],
        );
    }
    let copy = Altered::new();
    copy.set("sentence_bert_config.json", "max_seq_length", json!(9999));
    assert_eq!(copy.open().max_card_tokens(), 128);
}

#[test]
fn networks_of_other_types_are_refused() {
    for (member, value) in [
        ("model_type", "xlm"),
        ("model_type", "distilbert"),
        ("model_type", "evil\u{1b}[2J\n"),
        ("hidden_act", "silu"),
        ("position_embedding_type", "relative_key"),
    ] {
        assert_refused(
            |copy| copy.set("config.json", member, json!(value)),
            &["config.json", member],
        );
    }
    assert_refused(
        |copy| copy.set("config.json", "is_decoder", json!(true)),
        &["is_decoder"],
    );
    // Another type has other members; the error must name the type.
    assert_refused(
        |copy| copy.write("config.json", r#"{"model_type": "t5", "d_model": 512}"#),
        &["model_type", "t5"],
    );
}

#[test]
fn steps_that_are_not_understood_are_refused() {
    assert_refused(
        |copy| {
            copy.change("modules.json", |modules| {
                modules[2]["type"] = json!("sentence_transformers.models.Dense");
            });
        },
        &["modules.json", "Dense"],
    );
    for index in [0, 1] {
        for path in ["../elsewhere", "/etc", "a/../../b", "a\\b"] {
            assert_refused(
                |copy| {
                    copy.change("modules.json", |modules| {
                        modules[index]["path"] = json!(path);
                    });
                },
                &["modules.json", "outside"],
            );
        }
        assert_refused(
            |copy| {
                copy.change("modules.json", |modules| {
                    modules.as_array_mut().unwrap().remove(index);
                });
            },
            &["modules.json", "names no"],
        );
        assert_refused(
            |copy| {
                copy.change("modules.json", |modules| {
                    modules[2] = modules[index].clone()
                });
            },
            &["modules.json", "twice"],
        );
    }
}

#[test]
fn pooling_must_be_one_that_is_understood() {
    for settings in [
        json!({}),
        json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}),
        json!({"pooling_mode_lasttoken": true}),
        json!({"pooling_mode_weightedmean_tokens": true}),
        json!({"pooling_mode": "lasttoken"}),
        json!({"pooling_mode": ["cls", "mean"]}),
        json!({"pooling_mode": 1}),
    ] {
        assert_refused(
            |copy| copy.write("1_Pooling/config.json", settings.to_string()),
            &["1_Pooling/config.json", "mean, cls and max"],
        );
    }
    assert_refused(
        |copy| {
            copy.set(
                "1_Pooling/config.json",
                "word_embedding_dimension",
                json!(384),
            )
        },
        &["1_Pooling/config.json", "384", "32"],
    );
}

#[test]
fn prompts_must_be_there_and_short() {
    let file = "config_sentence_transformers.json";
    for (written, word) in [
        (json!([]), file),
        (json!({"prompts": {"query": 1}}), file),
        (
            json!({"default_prompt_name": "query"}),
            "default_prompt_name",
        ),
        (json!({"prompts": {"query": "x".repeat(129)}}), "128"),
    ] {
        assert_refused(|copy| copy.write(file, written.to_string()), &[word]);
    }
    let copy = Altered::new();
    copy.write(
        file,
        json!({"prompts": {"query": "x".repeat(128)}}).to_string(),
    );
    copy.open();
}

#[test]
fn a_tokenizer_must_load_and_belong_to_the_network() {
    assert_refused(
        |copy| copy.write("tokenizer.json", r#"{"version": "1.0"}"#),
        &["tokenizer.json", "cannot be read"],
    );
    assert_refused(
        |copy| copy.set("tokenizer.json", "post_processor", Value::Null),
        &["tokenizer.json", "0 special tokens"],
    );
    assert_refused(
        |copy| {
            copy.change("tokenizer.json", |whole| {
                whole["model"]["vocab"]["strange"] = json!(100_000);
            });
        },
        &["tokenizer.json", "100000"],
    );
}

#[test]
fn weights_must_be_whole() {
    assert_refused(
        |copy| copy.write("model.safetensors", "no weights"),
        &["model.safetensors"],
    );
    assert_refused(
        |copy| {
            copy.change_weights(str::to_owned, |numbers| numbers.truncate(1000));
        },
        &["model.safetensors", "cannot be read"],
    );
    assert_refused(
        |copy| copy.change_weights(|name| format!("electra.{name}"), |_| {}),
        &["model.safetensors", "word_embeddings"],
    );
    let lost = "encoder.layer.1.output.dense.bias";
    let rename = |name: &str| match name == lost {
        true => "lost".to_owned(),
        false => name.to_owned(),
    };
    assert_refused(|copy| copy.change_weights(rename, |_| {}), &[lost]);
    for wrong in [f32::NAN, f32::INFINITY] {
        let overwrite = |numbers: &mut Vec<u8>| {
            let last = numbers.len() - 4;
            numbers[last..].copy_from_slice(&wrong.to_le_bytes());
        };
        assert_refused(
            |copy| copy.change_weights(str::to_owned, overwrite),
            &["model.safetensors", "not finite"],
        );
    }
}

#[test]
fn weights_without_a_vector_fail_the_trial() {
    // Every norm gives zeros, so the vector of every text has length zero.
    assert_refused(
        |copy| copy.change_weights(str::to_owned, |numbers| numbers.fill(0)),
        &["a test sentence"],
    );
}

#[test]
fn files_longer_than_their_bound_are_not_read() {
    for (file, limit) in [
        ("model.safetensors", MAX_WEIGHTS_BYTES),
        ("tokenizer.json", MAX_TOKENIZER_BYTES),
        ("config.json", MAX_SETTINGS_BYTES),
        ("modules.json", MAX_SETTINGS_BYTES),
    ] {
        // The file is sparse, so it takes no space on the disk.
        let lengthen = |copy: &Altered| {
            let file = std::fs::File::options()
                .write(true)
                .open(copy.path().join(file));
            file.unwrap().set_len(limit + 1).unwrap();
        };
        assert_refused(lengthen, &[file, "is longer than", &limit.to_string()]);
    }
}

#[test]
fn what_is_no_file_is_not_read() {
    assert_refused(
        |copy| {
            copy.remove("tokenizer.json");
            std::fs::create_dir(copy.path().join("tokenizer.json")).unwrap();
        },
        &["tokenizer.json", "not a regular file"],
    );
}
