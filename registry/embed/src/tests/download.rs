//! Downloads of models: the files to fetch, and the folder that collects them.

use serde_json::json;

use super::*;

/// Names, and whether the model needs them.
fn file_list(modules: Option<&Value>) -> Result<Vec<(String, bool)>, ModelError> {
    let bytes = modules.map(|modules| serde_json::to_vec(modules).unwrap());
    let files = list_model_files(bytes.as_deref())?;
    let names = files.into_iter().map(|file| (file.path, file.is_required));
    Ok(names.collect())
}

fn modules(network: &str, pooling: &str) -> Value {
    json!([
        {"path": network, "type": "sentence_transformers.models.Transformer"},
        {"path": pooling, "type": "sentence_transformers.models.Pooling"},
    ])
}

/// Copies the tiny model to an open download.
fn fill(download: &ModelDownload) {
    std::fs::create_dir_all(download.folder().join("1_Pooling")).unwrap();
    for file in FILES {
        std::fs::copy(tiny().join(file), download.folder().join(file)).unwrap();
    }
}

fn hidden_entries(data: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data.join("models")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn the_files_of_a_model_are_json_and_safetensors() {
    let listed = file_list(None).unwrap();
    let expected = [
        ("config.json", true),
        ("1_Pooling/config.json", false),
        ("sentence_bert_config.json", false),
        ("config_sentence_transformers.json", false),
        ("tokenizer.json", true),
        ("model.safetensors", true),
    ];
    assert_eq!(
        listed,
        expected.map(|(path, needed)| (path.to_owned(), needed))
    );
    let listed = file_list(Some(&modules("0_Net", "pool"))).unwrap();
    let has = |path: &str, needed| listed.contains(&(path.to_owned(), needed));
    assert!(has("0_Net/model.safetensors", true), "{listed:?}");
    assert!(has("pool/config.json", true), "{listed:?}");
    assert!(
        has("config_sentence_transformers.json", false),
        "{listed:?}"
    );
    assert_eq!(first_model_file().path, "modules.json");
}

#[test]
fn files_lie_in_the_models_folder() {
    // The longest file name in it is `sentence_bert_config.json`.
    let longest = "x".repeat(200 - "/sentence_bert_config.json".len());
    file_list(Some(&modules(&longest, "1_Pooling"))).unwrap();
    let long = format!("{longest}x");
    // Paths are shown on terminals and in a command to copy.
    let hidden = ["a\u{1b}[2Jb", "a\nb", "a\u{202e}b"];
    let outside = ["../x", "/x", "a/../../x", "a\\b", &long];
    for network in outside.into_iter().chain(hidden) {
        let error = file_list(Some(&modules(network, "1_Pooling"))).unwrap_err();
        assert!(
            matches!(error, ModelError::Unsupported { .. }),
            "{network}: {error}"
        );
    }
}

#[test]
fn a_download_is_installed_under_its_name_and_removed() {
    let data = tempfile::tempdir().unwrap();
    let download = ModelDownload::open(data.path(), "hub acme/tiny", true).unwrap();
    fill(&download);
    let installed = download.install("acme/tiny").unwrap();
    let about = installed.model.description.clone().unwrap();
    assert_eq!(about.name, "acme/tiny");
    assert_eq!(about.id, open(&tiny()).model_identity().id);
    let encoder = installed.model.open(EncoderOptions::default()).unwrap();
    assert_eq!(encoder.model_identity().name, "acme/tiny");
    assert_eq!(hidden_entries(data.path()), [""; 0]);

    // A model that is refused leaves nothing.
    let download = ModelDownload::open(data.path(), "hub acme/wrong", true).unwrap();
    fill(&download);
    std::fs::write(download.folder().join("model.safetensors"), "no weights").unwrap();
    download.install("acme/wrong").unwrap_err();
    assert_eq!(hidden_entries(data.path()), [""; 0]);
    let current = find_current_model(data.path()).unwrap().unwrap();
    assert_eq!(current.description, Some(about));
}

#[test]
fn one_download_is_kept_for_its_source() {
    let data = tempfile::tempdir().unwrap();
    let write_part = |source: &str, keeps_files: bool| {
        let download = ModelDownload::open(data.path(), source, keeps_files).unwrap();
        let part = download.folder().join("part");
        let was_there = part.exists();
        std::fs::write(part, "half").unwrap();
        assert_eq!(hidden_entries(data.path()).len(), 1);
        was_there
    };
    assert!(!write_part("one", true));
    assert!(write_part("one", true));
    // An installation from a folder keeps it as well.
    install_model(data.path(), &tiny()).unwrap();
    assert!(write_part("one", true));
    assert!(!write_part("one", false));
    assert!(!write_part("other", true));
    assert!(!write_part("one", true));
    assert_eq!(list_installed_models(data.path()).unwrap().len(), 1);
    let download = ModelDownload::open(data.path(), "one", true).unwrap();
    download.remove();
    assert_eq!(hidden_entries(data.path()), [""; 0]);
}

#[test]
fn nothing_else_is_installed_during_a_download() {
    let data = tempfile::tempdir().unwrap();
    let download = ModelDownload::open(data.path(), "one", true).unwrap();
    for error in [
        install_model(data.path(), &tiny()).unwrap_err(),
        ModelDownload::open(data.path(), "two", true).unwrap_err(),
    ] {
        assert!(matches!(error, ModelError::Installing(_)), "{error}");
    }
    drop(download);
    install_model(data.path(), &tiny()).unwrap();
}
