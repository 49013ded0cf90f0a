//! Installation of models in the data folder.

use std::fs::File;
use std::io::Write;

use serde_json::json;

use super::*;

/// The files and folders in a data folder's `models`.
fn listing(data_dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data_dir.join("models")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// A model other than the tiny one.
fn other() -> Altered {
    let copy = Altered::new();
    copy.set("config.json", "_name_or_path", json!("another"));
    copy
}

#[tokio::test]
async fn a_folder_is_installed_once_and_used() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().join("made").join("when needed");
    assert_eq!(list_installed_models(&data).unwrap(), []);
    assert_eq!(find_current_model(&data).unwrap(), None);

    let done = install_model(&data, &tiny()).unwrap();
    assert!(!done.was_installed && !done.was_current);
    let about = done.model.description.clone().unwrap();
    assert_eq!(about.id, open(&tiny()).model_identity().id);
    assert_eq!(
        (
            about.name.as_str(),
            about.dimensions,
            about.max_length,
            about.pooling
        ),
        ("tiny", 32, 96, Pooling::Mean)
    );
    let sizes = FILES.map(|file| std::fs::metadata(tiny().join(file)).unwrap().len());
    assert_eq!(about.bytes, sizes.iter().sum::<u64>());
    assert_eq!(
        list_installed_models(&data).unwrap(),
        std::slice::from_ref(&done.model)
    );
    assert_eq!(find_current_model(&data).unwrap(), Some(done.model.clone()));
    let mut expected = ["current", "lock", &about.id[..16]];
    expected.sort_unstable();
    assert_eq!(listing(&data), expected);

    let encoder = done.model.open(EncoderOptions::default()).unwrap();
    assert_eq!(encoder.model_identity(), open(&tiny()).model_identity());
    assert_same(
        &vector(&encoder, "find an agent", TextKind::Query).await,
        &vector(&open(&tiny()), "find an agent", TextKind::Query).await,
    );

    let before = std::fs::metadata(done.model.folder.join("config.json")).unwrap();
    let again = install_model(&data, &tiny()).unwrap();
    assert!(again.was_installed && again.was_current);
    assert_eq!(again.model, done.model);
    let after = std::fs::metadata(done.model.folder.join("config.json")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}

#[test]
fn the_last_one_installed_is_in_use_and_the_others_stay() {
    let data = tempfile::tempdir().unwrap();
    let first = install_model(data.path(), &tiny()).unwrap().model.folder;
    let second = install_model(data.path(), &other().path())
        .unwrap()
        .model
        .folder;
    assert_ne!(first, second);
    let in_use = |data: &Path| find_current_model(data).unwrap().unwrap().folder;
    assert_eq!(in_use(data.path()), second);
    assert_eq!(list_installed_models(data.path()).unwrap().len(), 2);

    let back = install_model(data.path(), &tiny()).unwrap();
    assert!(back.was_installed && !back.was_current);
    assert_eq!(in_use(data.path()), first);
    let marked = list_installed_models(data.path()).unwrap();
    let marked = marked.iter().filter(|model| model.is_current);
    assert_eq!(
        marked.map(|model| &model.folder).collect::<Vec<_>>(),
        [&first]
    );
}

#[test]
fn a_model_has_the_name_under_which_it_was_installed_last() {
    let data = tempfile::tempdir().unwrap();
    let first = install_model(data.path(), &tiny()).unwrap().model;
    let copy = Altered::new();
    let again = install_model(data.path(), &copy.path()).unwrap();
    assert!(again.was_installed && again.was_current);
    let (before, after) = (first.description.unwrap(), again.model.description.clone());
    let renamed = ModelDescription {
        name: "model".to_owned(),
        ..before
    };
    assert_eq!(after, Some(renamed));
    again.model.open(EncoderOptions::default()).unwrap();
    assert_eq!(listing(data.path()).len(), 3);
}

#[test]
fn what_is_refused_changes_nothing() {
    let data = tempfile::tempdir().unwrap();
    let first = install_model(data.path(), &tiny()).unwrap().model;
    let before = listing(data.path());
    let wrong = Altered::new();
    wrong.change_weights(str::to_owned, |numbers| numbers.fill(0));
    let lacking = Altered::new();
    lacking.remove("tokenizer.json");
    let text = data.path().join("text");
    std::fs::write(&text, "no folder").unwrap();
    for source in [
        &wrong.path(),
        &lacking.path(),
        &text,
        &data.path().join("gone"),
    ] {
        install_model(data.path(), source).unwrap_err();
        assert_eq!(listing(data.path()), before);
        assert_eq!(find_current_model(data.path()).unwrap().unwrap(), first);
    }
}

#[test]
fn what_a_killed_process_left_is_no_model_and_is_cleared_away() {
    let data = tempfile::tempdir().unwrap();
    let models = data.path().join("models");
    let half = models.join(".installing-abc").join("model");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(half.join("config.json"), "{").unwrap();
    std::fs::write(models.join(".installing-def"), "0123").unwrap();
    assert_eq!(list_installed_models(data.path()).unwrap(), []);
    assert_eq!(find_current_model(data.path()).unwrap(), None);
    install_model(data.path(), &tiny()).unwrap();
    assert_eq!(list_installed_models(data.path()).unwrap().len(), 1);
    assert_eq!(listing(data.path()).len(), 3);
}

#[test]
fn one_process_installs_at_a_time() {
    let data = tempfile::tempdir().unwrap();
    let models = data.path().join("models");
    std::fs::create_dir(&models).unwrap();
    let lock = File::create(models.join("lock")).unwrap();
    lock.lock().unwrap();
    let error = install_model(data.path(), &tiny()).unwrap_err();
    assert!(matches!(error, ModelError::Installing(_)), "{error}");
    drop(lock);
    install_model(data.path(), &tiny()).unwrap();
}

#[test]
fn a_damaged_model_is_noticed_and_installed_again() {
    let data = tempfile::tempdir().unwrap();
    let model = install_model(data.path(), &tiny()).unwrap().model;
    let weights = model.folder.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, &bytes).unwrap();
    let error = model.open(EncoderOptions::default()).unwrap_err();
    assert!(matches!(error, ModelError::Damaged { .. }), "{error}");

    let again = install_model(data.path(), &tiny()).unwrap();
    assert!(!again.was_installed && again.was_current);
    again.model.open(EncoderOptions::default()).unwrap();

    std::fs::remove_file(model.folder.join("about.json")).unwrap();
    assert_eq!(
        list_installed_models(data.path()).unwrap()[0].description,
        None
    );
    let error = find_current_model(data.path()).unwrap_err();
    assert!(
        error.to_string().contains("install the model again"),
        "{error}"
    );
    install_model(data.path(), &tiny()).unwrap();
    assert!(find_current_model(data.path()).unwrap().is_some());
    assert_eq!(listing(data.path()).len(), 3);
}

#[test]
fn what_names_the_model_in_use_may_not_lead_elsewhere() {
    let data = tempfile::tempdir().unwrap();
    install_model(data.path(), &tiny()).unwrap();
    for name in [
        "",
        "..",
        "../../elsewhere",
        "0123456789ABCDEF",
        "0123456789abcdef0",
    ] {
        let mut file = File::create(data.path().join("models/current")).unwrap();
        writeln!(file, "{name}").unwrap();
        let error = find_current_model(data.path()).unwrap_err();
        assert!(
            matches!(error, ModelError::Damaged { .. }),
            "{name}: {error}"
        );
        assert!(!list_installed_models(data.path()).unwrap()[0].is_current);
    }
    // A model that does not exist.
    std::fs::write(data.path().join("models/current"), "0123456789abcdef\n").unwrap();
    assert!(matches!(
        find_current_model(data.path()),
        Err(ModelError::Damaged { .. })
    ));
    install_model(data.path(), &tiny()).unwrap();
    assert!(find_current_model(data.path()).unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn links_are_followed_in_a_folder_somebody_named_and_nowhere_else() {
    use std::os::unix::fs::symlink;
    // The layout of download caches.
    let cache = tempfile::tempdir().unwrap();
    std::fs::create_dir(cache.path().join("1_Pooling")).unwrap();
    for file in FILES {
        let whole = tiny().canonicalize().unwrap().join(file);
        symlink(whole, cache.path().join(file)).unwrap();
    }
    assert_eq!(
        open(cache.path()).model_identity().id,
        open(&tiny()).model_identity().id
    );
    let data = tempfile::tempdir().unwrap();
    let model = install_model(data.path(), cache.path()).unwrap().model;
    for file in FILES {
        let facts = std::fs::symlink_metadata(model.folder.join(file)).unwrap();
        assert!(facts.is_file(), "{file}");
    }
    let weights = model.folder.join("model.safetensors");
    std::fs::remove_file(&weights).unwrap();
    symlink(
        tiny().canonicalize().unwrap().join("model.safetensors"),
        &weights,
    )
    .unwrap();
    let error = model.open(EncoderOptions::default()).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}
