//! The name of a model, and the files that its id covers.

use serde_json::json;

use super::*;
use crate::model_folder::sanitize_model_name;

fn info(copy: &Altered) -> ModelIdentity {
    copy.open().model_identity().clone()
}

#[test]
fn the_id_follows_the_files_that_decide_the_vectors() {
    let copy = Altered::new();
    let first = info(&copy);
    assert_eq!(first.id.len(), 64);
    assert_eq!(first.id, open(&tiny()).model_identity().id);
    // Files that do not affect vectors do not change the id.
    copy.write("README.md", "about");
    assert_eq!(info(&copy), first);

    let mut seen = vec![first.id];
    let mut assert_new = |copy: &Altered| {
        let id = info(copy).id;
        assert!(!seen.contains(&id));
        seen.push(id);
    };
    copy.set("config.json", "layer_norm_eps", json!(1e-11));
    assert_new(&copy);
    copy.set("sentence_bert_config.json", "max_seq_length", json!(90));
    assert_new(&copy);
    copy.change("tokenizer.json", |whole| {
        whole["normalizer"]["lowercase"] = json!(false);
    });
    assert_new(&copy);
    copy.change_weights(str::to_owned, |numbers| numbers[0] ^= 1);
    assert_new(&copy);
    copy.write("1_Pooling/config.json", r#"{"pooling_mode": "cls"}"#);
    assert_new(&copy);
    copy.write(
        "config_sentence_transformers.json",
        r#"{"prompts": {"query": "find "}}"#,
    );
    assert_new(&copy);
    copy.remove("modules.json");
    assert_new(&copy);
}

/// `_name_or_path` names the model that a model was trained from.
#[cfg(unix)]
#[test]
fn a_model_is_called_after_its_folder_and_not_after_its_parent() {
    let copy = Altered::new();
    copy.set("config.json", "_name_or_path", json!("the/parent"));
    assert_eq!(info(&copy).name, "model");
    let evil = copy.0.path().join("evil\u{1b}[2J\n\u{202e}");
    std::fs::rename(copy.path(), &evil).unwrap();
    let name = open(&evil).model_identity().name.clone();
    assert_eq!(name, "evil\\u{1b}[2J\\u{a}\\u{202e}");
    // The folder of a download cache is named after a commit.
    let snapshots = copy.0.path().join("models--acme--tiny-v2/snapshots");
    std::fs::create_dir_all(&snapshots).unwrap();
    let snapshot = snapshots.join("0123456789abcdef0123456789abcdef01234567");
    std::fs::rename(&evil, &snapshot).unwrap();
    assert_eq!(open(&snapshot).model_identity().name, "acme/tiny-v2");
}

#[test]
fn names_are_visible_and_short() {
    assert_eq!(
        sanitize_model_name("org/Ünïcode-モデル v2"),
        "org/Ünïcode-モデル v2"
    );
    assert_eq!(sanitize_model_name("a\tb"), "a\\u{9}b");
    assert_eq!(
        sanitize_model_name(&"x".repeat(500)).chars().count(),
        MAX_MODEL_NAME_CHARS
    );
    assert_eq!(
        sanitize_model_name(&"\u{7f}".repeat(500)).chars().count(),
        MAX_MODEL_NAME_CHARS
    );
}
