//! `model install NAME`: from a hub that redirects to a second host, with wrong and hostile answers.

mod storage;

use std::path::Path;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use storage::Storage;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::origin::{Origin, OriginReply, ResponseGate};
use crate::support::program::{
    FinishedProgram, Program, assert_exit, join_lines, registry_command,
};

const NAME: &str = "acme/tiny";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// The files of the tiny model.
const FILES: [&str; 6] = [
    "modules.json",
    "config.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "model.safetensors",
];
/// Bound of each JSON file except the tokenizer's, in bytes.
const MAX_SETTINGS_BYTES: usize = 1024 * 1024;

/// A hub with one model, and a data folder.
struct TestHub {
    hub: Origin,
    storage: Storage,
    data: TempDir,
}

impl TestHub {
    async fn start() -> Self {
        let started = Self {
            hub: Origin::start(),
            storage: Storage::start().await,
            data: TempDir::new().unwrap(),
        };
        for file in FILES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("models/tiny")
                .join(file);
            started.set_file(file, std::fs::read(path).unwrap());
        }
        started
    }

    fn path(revision: &str, file: &str) -> String {
        format!("/{NAME}/resolve/{revision}/{file}")
    }

    fn reply(&self, file: &str) -> OriginReply {
        OriginReply::redirect(&self.storage.url(&format!("/{file}")))
            .with_header("x-repo-commit", COMMIT)
    }

    fn set_file(&self, file: &str, bytes: Vec<u8>) {
        self.storage.set_file(&format!("/{file}"), bytes);
        self.set_reply(file, &self.reply(file));
    }

    /// Sets the hub's own reply, at the commit and at the branch.
    fn set_reply(&self, file: &str, reply: &OriginReply) {
        for revision in [COMMIT, "main"] {
            self.hub
                .set_reply(&Self::path(revision, file), reply.clone());
        }
    }

    fn digest(&self, file: &str) -> String {
        let bytes = self.storage.file(&format!("/{file}"));
        HEXLOWER.encode(digest(&SHA256, &bytes).as_ref())
    }

    /// The arguments that pin these files.
    fn pins(&self, files: &[&str]) -> Vec<String> {
        let mut arguments = vec![NAME.to_owned(), "--revision".to_owned(), COMMIT.to_owned()];
        for file in files {
            arguments.push("--sha256".to_owned());
            arguments.push(format!("{file}={}", self.digest(file)));
        }
        arguments
    }

    fn command<A: AsRef<str>>(&self, arguments: &[A]) -> Command {
        let mut command = registry_command(["model", "install", "--hub", &self.hub.url("")]);
        for argument in arguments {
            let argument: &str = argument.as_ref();
            command.arg(argument);
        }
        command.arg("--data-dir").arg(self.data.path());
        command
    }

    async fn install<A: AsRef<str>>(&self, arguments: &[A]) -> FinishedProgram {
        Program::run(self.command(arguments)).await
    }

    async fn install_pinned(&self) -> FinishedProgram {
        self.install(&self.pins(&FILES)).await
    }

    async fn install_trusting(&self) -> FinishedProgram {
        self.install(&[NAME, "--trust-on-first-use"]).await
    }

    /// What the folder of models holds besides its lock.
    fn entries(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.data.path().join("models")) else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "lock").collect()
    }

    /// Checks that one model is installed and in use, and nothing else is left.
    #[track_caller]
    fn assert_installed(&self, finished: &FinishedProgram) {
        assert_exit(finished, 0, "");
        let current = a2a_registry_embed::find_current_model(self.data.path()).unwrap();
        let about = current.unwrap().description.unwrap();
        assert_eq!(about.name, NAME);
        let mut expected = vec![about.id[..16].to_owned(), "current".to_owned()];
        let mut entries = self.entries();
        expected.sort_unstable();
        entries.sort_unstable();
        assert_eq!(entries, expected);
    }

    /// Checks that the command failed with these words, and that there is no model.
    #[track_caller]
    fn assert_refused(&self, finished: &FinishedProgram, words: &str) {
        assert_exit(finished, 2, words);
        let entries = self.entries();
        let is_hidden = |name: &String| name.starts_with(".downloading-");
        assert!(entries.iter().all(is_hidden), "{entries:?}");
    }
}

#[tokio::test]
async fn a_pinned_model_is_installed_under_its_name() {
    let hub = TestHub::start().await;
    hub.storage
        .set_location("/config.json", &hub.hub.url("/back/config.json"));
    let config = hub.storage.file("/config.json");
    hub.hub
        .set_reply("/back/config.json", OriginReply::json(config));
    let mut command = hub.command(&hub.pins(&FILES));
    command.env("A2A_REGISTRY_HUB_TOKEN", "hush-7");
    let finished = Program::run(command).await;
    hub.assert_installed(&finished);
    assert!(
        join_lines(&finished.stdout).contains("acme/tiny was installed"),
        "{finished:#?}"
    );

    // The token goes to the hub, and not to where the hub redirects, even if that host redirects back.
    for file in FILES {
        let [request] = &hub.hub.requests_to(&TestHub::path(COMMIT, file))[..] else {
            panic!("{file} is requested once");
        };
        assert_eq!(
            request.header("authorization"),
            Some("Bearer hush-7"),
            "{file}"
        );
        let [request] = &hub.storage.requests_to(&format!("/{file}"))[..] else {
            panic!("{file} is fetched once");
        };
        assert_eq!(request.header("authorization"), None, "{file}");
        assert_eq!(request.header("referer"), None, "{file}");
    }
    let [back] = &hub.hub.requests_to("/back/config.json")[..] else {
        panic!("the second redirect is followed once");
    };
    assert_eq!(back.header("authorization"), None);

    let data = hub.data.path().to_str().unwrap();
    let status = Program::run(registry_command(["model", "status", "--data-dir", data])).await;
    assert!(join_lines(&status.stdout).contains(NAME), "{status:#?}");
}

#[tokio::test]
async fn a_token_comes_from_a_file_and_is_not_an_argument() {
    let hub = TestHub::start().await;
    let file = hub.data.path().join("token");
    std::fs::write(&file, "hush-7\n").unwrap();
    let modules = TestHub::path("main", "modules.json");
    let given = format!("@{}", file.display());
    let finished = hub
        .install(&[NAME, "--trust-on-first-use", "--hub-token", &given])
        .await;
    hub.assert_installed(&finished);
    let request = &hub.hub.requests_to(&modules)[0];
    assert_eq!(request.header("authorization"), Some("Bearer hush-7"));

    let typed = hub
        .install(&[NAME, "--trust-on-first-use", "--hub-token", "hush-7"])
        .await;
    assert_exit(&typed, 2, "--hub-token takes @FILE");
    assert!(!join_lines(&typed.stderr).contains("hush"), "{typed:#?}");
    assert_eq!(hub.hub.requests_to(&modules).len(), 1);
}

#[tokio::test]
async fn what_is_trusted_on_first_use_can_be_pinned() {
    let hub = TestHub::start().await;
    let finished = hub.install_trusting().await;
    hub.assert_installed(&finished);
    // The hub names the commit of the first file, and the others are of the same one.
    for file in FILES {
        let is_first = file == "modules.json";
        let newest = hub.hub.requests_to(&TestHub::path("main", file)).len();
        let pinned = hub.hub.requests_to(&TestHub::path(COMMIT, file)).len();
        assert_eq!(
            (newest, pinned),
            (usize::from(is_first), usize::from(!is_first))
        );
    }
    let words: Vec<&str> = finished.stdout.last().unwrap().split(' ').collect();
    let start = words.iter().position(|word| *word == "model").unwrap();
    for file in FILES {
        let pin = format!("{file}={}", hub.digest(file));
        assert!(words.contains(&pin.as_str()), "{words:?}");
    }
    // Exactly these files are installed elsewhere, or none.
    let install_elsewhere = async || {
        let elsewhere = TempDir::new().unwrap();
        let mut command = registry_command(&words[start..]);
        command
            .arg("--json")
            .arg("--data-dir")
            .arg(elsewhere.path());
        Program::run(command).await
    };
    let same = install_elsewhere().await;
    assert_exit(&same, 0, "");
    let document: Value = serde_json::from_str(&join_lines(&same.stdout)).unwrap();
    assert_eq!(document["pins"]["revision"], COMMIT, "{document}");
    assert_eq!(document["model"]["name"], NAME, "{document}");
    let mut changed = hub.storage.file("/model.safetensors");
    *changed.last_mut().unwrap() ^= 1;
    hub.set_file("model.safetensors", changed);
    assert_exit(&install_elsewhere().await, 2, "model.safetensors");
}

#[tokio::test]
async fn a_model_that_is_installed_with_its_pins_is_not_downloaded_again() {
    let hub = TestHub::start().await;
    let pins = hub.pins(&FILES);
    hub.assert_installed(&hub.install(&pins).await);
    let weights = hub.storage.file("/model.safetensors");
    // Nothing is asked of the hub.
    for file in FILES {
        hub.set_reply(file, &OriginReply::status(503));
    }
    let again = hub.install(&pins).await;
    hub.assert_installed(&again);
    let shown = join_lines(&again.stdout);
    assert!(shown.contains("is already installed and in use"), "{shown}");
    assert_eq!(hub.storage.requests().len(), FILES.len());

    // Another model was installed since: this one is used again, without a download.
    let other_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny_xlmr");
    let mut other = registry_command(["model", "install", other_folder.to_str().unwrap()]);
    other.arg("--data-dir").arg(hub.data.path());
    assert_exit(&Program::run(other).await, 0, "");
    let again = hub.install(&pins).await;
    assert_exit(&again, 0, "");
    let shown = join_lines(&again.stdout);
    assert!(
        shown.contains("was already installed, and is now in use"),
        "{shown}"
    );

    // A file that is missing among the pins, or another content of one, is not what is installed.
    let fewer = hub.pins(&FILES[..5]);
    assert_exit(&hub.install(&fewer).await, 2, "HTTP 503");
    let current = a2a_registry_embed::find_current_model(hub.data.path()).unwrap();
    let installed = current.unwrap().folder.join("model.safetensors");
    let mut damaged = weights;
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(installed, damaged).unwrap();
    assert_exit(&hub.install(&pins).await, 2, "HTTP 503");
}

#[tokio::test]
async fn a_wrong_digest_installs_nothing() {
    let hub = TestHub::start().await;
    let pins = hub.pins(&FILES);
    let right = hub.storage.file("/tokenizer.json");
    let expected = hub.digest("tokenizer.json");
    hub.set_file("tokenizer.json", b"{}".to_vec());
    let actual = hub.digest("tokenizer.json");
    let finished = hub.install(&pins).await;
    hub.assert_refused(&finished, "tokenizer.json");
    let line = &finished.stderr[0];
    assert!(line.contains(&expected) && line.contains(&actual), "{line}");
    // The file is fetched anew, and the complete ones before it are not.
    hub.set_file("tokenizer.json", right);
    hub.assert_installed(&hub.install(&pins).await);
    let tokenizer = hub.storage.requests_to("/tokenizer.json");
    assert_eq!(tokenizer.len(), 2);
    assert_eq!(tokenizer[1].header("range"), None);
    assert_eq!(hub.storage.requests_to("/config.json").len(), 1);
}

#[tokio::test]
async fn every_file_has_to_be_pinned() {
    let hub = TestHub::start().await;
    let without = |left_out: &str| {
        let files: Vec<&str> = FILES.into_iter().filter(|file| *file != left_out).collect();
        hub.pins(&files)
    };
    // Optional files change the vectors as well.
    for file in FILES {
        hub.assert_refused(&hub.install(&without(file)).await, file);
    }
    let mut pins = hub.pins(&FILES);
    pins.extend([
        "--sha256".to_owned(),
        format!("other.json={}", "0".repeat(64)),
    ]);
    hub.assert_refused(&hub.install(&pins).await, "other.json is not a file");
    assert_eq!(hub.storage.requests_to("/model.safetensors").len(), 0);
    // What is pinned has to be there.
    let hub = TestHub::start().await;
    hub.set_reply("1_Pooling/config.json", &OriginReply::status(404));
    hub.assert_refused(&hub.install_pinned().await, "1_Pooling/config.json");
}

#[tokio::test]
async fn a_broken_download_is_continued() {
    let hub = TestHub::start().await;
    let weights = "/model.safetensors";
    let half = hub.storage.file(weights).len() / 2;
    // Continued at once while bytes arrive, and then by the next process.
    hub.storage.cut(weights, &[half, 0]);
    let broken = hub.install_pinned().await;
    hub.assert_refused(&broken, "continues where it stopped");
    assert!(
        !join_lines(&broken.stderr).contains("s3cret"),
        "{broken:#?}"
    );
    hub.assert_installed(&hub.install_pinned().await);
    let ranges: Vec<Option<String>> = hub
        .storage
        .requests_to(weights)
        .iter()
        .map(|request| request.header("range").map(str::to_owned))
        .collect();
    let rest = Some(format!("bytes={half}-"));
    assert_eq!(ranges, [None, rest.clone(), rest]);
    assert_eq!(hub.storage.requests_to("/tokenizer.json").len(), 1);
}

#[tokio::test]
async fn a_download_begins_anew_where_it_cannot_be_continued() {
    let hub = TestHub::start().await;
    let weights = "/model.safetensors";
    let half = hub.storage.file(weights).len() / 2;
    hub.storage.ignore_ranges();
    hub.storage.cut(weights, &[half]);
    hub.assert_installed(&hub.install_pinned().await);

    // Bytes of an earlier process whose digest nobody knows are not used.
    let hub = TestHub::start().await;
    hub.storage.cut(weights, &[half, 0]);
    hub.assert_refused(&hub.install_trusting().await, "broke");
    assert_eq!(hub.entries(), [""; 0]);
    hub.assert_installed(&hub.install_trusting().await);
    let last = hub.storage.requests_to(weights).pop().unwrap();
    assert_eq!(last.header("range"), None);
}

#[tokio::test]
async fn sizes_are_bounded() {
    let hub = TestHub::start().await;
    let mut config = hub.storage.file("/config.json");
    config.resize(MAX_SETTINGS_BYTES + 1, b' ');
    hub.set_file("config.json", config.clone());
    hub.assert_refused(&hub.install_trusting().await, "config.json is longer than");
    // Without a length the bytes are counted.
    hub.set_reply(
        "config.json",
        &OriginReply::endless().with_header("x-repo-commit", COMMIT),
    );
    hub.assert_refused(&hub.install_trusting().await, "config.json is longer than");
    config.truncate(MAX_SETTINGS_BYTES);
    hub.set_file("config.json", config);
    hub.assert_installed(&hub.install_trusting().await);
}

#[tokio::test]
async fn answers_that_are_no_files_are_named() {
    let hub = TestHub::start().await;
    for (reply, words) in [
        (OriginReply::html("<p>Sign in</p>"), "HTML page"),
        (OriginReply::status(401), "--hub-token"),
        (OriginReply::status(403), "--hub-token"),
        (OriginReply::status(503), "HTTP 503"),
        (OriginReply::redirect("http://hub.example/x"), "not https"),
        (OriginReply::status(302), "not https"),
        (
            OriginReply::redirect(&TestHub::path("main", "modules.json")),
            "redirects too often",
        ),
        (OriginReply::json("{}"), "--revision"),
        (
            OriginReply::json("{}").with_header("x-repo-commit", COMMIT),
            "modules.json",
        ),
    ] {
        hub.set_reply("modules.json", &reply);
        hub.assert_refused(&hub.install_trusting().await, words);
    }
    assert_eq!(hub.storage.requests().len(), 0);
}

#[tokio::test]
async fn pickle_files_are_refused() {
    let hub = TestHub::start().await;
    let mut pins = hub.pins(&FILES[..5]);
    pins.extend([
        "--sha256".to_owned(),
        format!("pytorch_model.bin={}", "0".repeat(64)),
    ]);
    hub.assert_refused(&hub.install(&pins).await, "safetensors");
    assert_eq!(hub.storage.requests().len(), 0);
    hub.set_file(
        "model.safetensors",
        b"\x80\x04\x95\x17\0\0\0\0\0\0\0cos\nsystem\n.".to_vec(),
    );
    for finished in [hub.install_pinned().await, hub.install_trusting().await] {
        hub.assert_refused(&finished, "model.safetensors");
        assert_eq!(hub.entries(), [""; 0]);
    }
    hub.set_reply("model.safetensors", &OriginReply::status(404));
    hub.assert_refused(
        &hub.install_trusting().await,
        "pickle files (.bin) are not taken",
    );
}

#[tokio::test]
async fn names_lead_nowhere_else() {
    let hub = TestHub::start().await;
    for name in [
        "../tiny",
        "acme/../tiny",
        "/acme/tiny",
        "acme/tiny/x",
        "acme/tiny?x",
    ] {
        let finished = hub.install(&[name, "--trust-on-first-use"]).await;
        hub.assert_refused(&finished, "is not the name of a model");
    }
    let unknown = hub.install(&[NAME]).await;
    hub.assert_refused(&unknown, "--trust-on-first-use");
    let unpinned = hub.install(&[NAME, "--revision", COMMIT]).await;
    hub.assert_refused(&unpinned, "--sha256");
    let branch = hub
        .install(&[NAME, "--revision", "main", "--trust-on-first-use"])
        .await;
    hub.assert_refused(&branch, "40 hexadecimal digits");
    assert!(hub.hub.subscribe_requests().borrow().is_empty());

    for folder in ["../evil", "/evil", "a/../../evil"] {
        let modules = serde_json::json!([
            {"path": folder, "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]);
        hub.set_file("modules.json", modules.to_string().into_bytes());
        let finished = hub.install_trusting().await;
        hub.assert_refused(&finished, "a path outside the model's folder");
        assert_eq!(hub.entries(), [""; 0]);
    }
}

#[tokio::test]
async fn one_model_is_installed_at_a_time() {
    let hub = TestHub::start().await;
    let gate = ResponseGate::default();
    hub.set_reply(
        "tokenizer.json",
        &hub.reply("tokenizer.json").gated_by(&gate),
    );
    let first = Program::start(hub.command(&hub.pins(&FILES)));
    hub.hub
        .wait_for_request(&TestHub::path(COMMIT, "tokenizer.json"), 1)
        .await;
    let second = hub.install_pinned().await;
    assert_exit(&second, 2, "another process is installing");
    gate.open();
    hub.assert_installed(&first.wait_for_end().await);
}

#[tokio::test]
async fn a_hub_is_secure_or_on_this_machine() {
    let data = TempDir::new().unwrap();
    for hub in [
        "http://hub.example",
        "https://ann:hush@hub.example",
        "hub.example",
    ] {
        let mut command = registry_command(["model", "install", NAME, "--trust-on-first-use"]);
        command.env("A2A_REGISTRY_HUB", hub);
        command.arg("--data-dir").arg(data.path());
        let finished = Program::run(command).await;
        assert_exit(&finished, 2, "--hub must be an https URL");
        assert!(
            !join_lines(&finished.stderr).contains("hush"),
            "{finished:#?}"
        );
    }
}
