//! Commands of an operator: migrate, reindex, reset the admin token, doctor.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{file, run_command};
use crate::support::cards::card_json;
use crate::support::database::Database;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_exit, join_lines, registry_command};
use crate::support::serving_registry::start_serving;
use crate::support::setup::RegistrySetup;

fn folder_of(folder: &TempDir) -> String {
    folder.path().join("data").to_str().unwrap().to_owned()
}

#[tokio::test]
async fn migrating_again_changes_nothing() {
    let database = Database::postgres().await;
    let folder = TempDir::new().unwrap();
    let data = folder_of(&folder);
    let migrate = ["migrate", "--data-dir", &data, "--database", database.url()];
    let first = run_command(&migrate).await;
    assert_exit(&first, 0, "");
    assert!(first.stdout[0].starts_with("migrated: "), "{first:#?}");
    let second = run_command(&migrate).await;
    assert_exit(&second, 0, "");
    assert!(
        join_lines(&second.stdout).contains("up to date"),
        "{second:#?}"
    );
    assert!(!Path::new(&data).exists(), "only a server makes the folder");

    let (server, ..) = serve(&data).await;
    assert!(server.terminate().await.status.success());
    let file = run_command(&["migrate", "--data-dir", &data]).await;
    assert_exit(&file, 0, "");
    assert!(join_lines(&file.stdout).contains("up to date"), "{file:#?}");
}

/// On a folder that is not there, and on one without a registry, commands say so and leave everything as it is.
/// `registry/cli` has the test that no command is missing here. `restore`, which makes a registry, is in
/// `tests/backup.rs`.
#[tokio::test]
async fn commands_on_a_data_folder_begin_no_registry() {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny");
    let tiny = tiny.to_str().unwrap();
    for (command, code) in [
        (vec!["token", "reset-admin"], 2),
        (vec!["migrate"], 2),
        (vec!["backup", "/nonexistent/backup"], 2),
        (vec!["reindex", "--registry", "http://127.0.0.1:1"], 2),
        (vec!["model", "install", tiny], 2),
        (vec!["model", "status"], 0),
        (vec!["doctor", "--registry", "http://127.0.0.1:1"], 0),
        (
            vec!["doctor", "--verify", "--registry", "http://127.0.0.1:1"],
            1,
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let data = folder_of(&folder);
        let mut line = command.clone();
        line.extend(["--data-dir", &data]);
        assert_exit(
            &run_command(&line).await,
            code,
            if code == 2 { &data } else { "" },
        );
        assert!(!Path::new(&data).exists(), "{command:?}");

        std::fs::create_dir(&data).unwrap();
        if command.contains(&"install") {
            continue;
        }
        assert_exit(
            &run_command(&line).await,
            code,
            if code == 2 { &data } else { "" },
        );
        let left: Vec<_> = std::fs::read_dir(&data).unwrap().collect();
        assert!(left.is_empty(), "{command:?}: {left:?}");
    }
    // An empty database is not a registry whose token could be lost.
    let database = Database::postgres().await;
    let reset = ["token", "reset-admin", "--database", database.url()];
    assert_exit(&run_command(&reset).await, 2, "no registry");
}

#[tokio::test]
async fn the_index_is_rebuilt_with_and_without_a_server() {
    let origin = Origin::start();
    origin.set_reply("/card.json", OriginReply::json(card_json("Echo", "repeat")));
    let served = RegistrySetup::new().approve_all().start().await;
    served.register(&origin.url("/card.json")).await;
    served.wait_for_hit("skill=repeat").await;

    let asked = served.run_admin_command(&["reindex"]).await;
    assert_exit(&asked, 0, "");
    assert!(
        join_lines(&asked.stdout).contains(&served.url),
        "{asked:#?}"
    );
    let refused = Program::run(served.anonymous_command(&["reindex"])).await;
    assert_exit(&refused, 2, "token");
    served.wait_for_hit("skill=repeat").await;

    // The folder belongs to the server while it runs, whichever registry the command names.
    let data = served.setup.data_folder().to_str().unwrap().to_owned();
    let alone = [
        "reindex",
        "--registry",
        "http://127.0.0.1:1",
        "--data-dir",
        &data,
    ];
    assert_exit(&run_command(&alone).await, 2, &data);
    served.program.terminate().await;
    let done = run_command(&alone).await;
    assert_exit(&done, 0, "");
    assert!(join_lines(&done.stdout).contains("1 agents"), "{done:#?}");

    let nowhere = [
        "reindex",
        "--registry",
        "http://127.0.0.1:1",
        "--data-dir",
        "/no/folder",
    ];
    assert_exit(&run_command(&nowhere).await, 2, "/no/folder");
}

/// Serves that folder; returns the process, its URL, and the admin token if one was printed.
async fn serve(data: &str) -> (Program, String, Option<String>) {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data];
    let (program, status_line) = start_serving(registry_command(serve)).await;
    let token = status_line.admin_token().map(str::to_owned);
    (program, status_line.url().to_owned(), token)
}

#[tokio::test]
async fn a_lost_admin_token_is_replaced() {
    let folder = TempDir::new().unwrap();
    let data = folder_of(&folder);
    let reset = ["token", "reset-admin", "--data-dir", &data];

    let (server, url, first) = serve(&data).await;
    let first = first.expect("the first start prints the token");
    let list = |url: &str, token: &str| {
        registry_command(["token", "list", "--registry", url, "--token", token])
    };
    assert_exit(&Program::run(list(&url, &first)).await, 0, "");
    assert_exit(&run_command(&reset).await, 2, &data);
    assert_exit(&Program::run(list(&url, &first)).await, 0, "");
    assert!(server.terminate().await.status.success());

    let second = run_command(&reset).await;
    assert_eq!(second.status.code(), Some(0), "{second:#?}");
    assert_eq!(second.stdout.len(), 1, "{second:#?}");
    let (server, url, printed) = serve(&data).await;
    assert_eq!(printed, None, "only the first start prints a token");
    assert_exit(&Program::run(list(&url, &first)).await, 2, "token");
    assert_exit(&Program::run(list(&url, &second.stdout[0])).await, 0, "");
    assert!(server.terminate().await.status.success());
}

#[tokio::test]
async fn the_doctor_checks_everything() {
    let served = RegistrySetup::new().start().await;
    let data = served.setup.data_folder().to_str().unwrap().to_owned();
    let well = served
        .run_admin_command(&["doctor", "--data-dir", &data])
        .await;
    assert_exit(&well, 0, "");
    for check in [
        "ok   configuration: ",
        " file descriptors: ",
        "ok   data folder: ",
        "ok   database: ",
        " name resolution: ",
        "ok   registry: ",
    ] {
        assert!(
            join_lines(&well.stdout).contains(check),
            "{check}: {well:#?}"
        );
    }

    let (_folder, path) = file("[server]\nlissen = 1\n");
    let ill = served
        .run_admin_command(&["doctor", "--json", "--config", &path])
        .await;
    assert_eq!(ill.status.code(), Some(1), "{ill:#?}");
    let checks: serde_json::Value = serde_json::from_str(&join_lines(&ill.stdout)).unwrap();
    assert_eq!(checks[0]["verdict"], "fail");
    assert!(checks[0]["detail"].as_str().unwrap().contains("lissen"));
}

/// A secret that others can change, identity providers with faults, and a public URL that leads elsewhere each get a
/// line with the next step, and what is in order is said too.
#[tokio::test]
async fn the_doctor_names_the_next_step() {
    let served = RegistrySetup::new().start().await;
    let other = RegistrySetup::new().start().await;
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("key.pem");
    std::fs::write(&key, "a secret").unwrap();
    let provider = |jwks: serde_json::Value, issuer: Option<&str>| {
        let origin = Origin::start();
        let own = origin.url("");
        let metadata = serde_json::json!({
            "issuer": issuer.unwrap_or(&own), "jwks_uri": origin.url("/jwks"),
        });
        let path = "/.well-known/openid-configuration";
        origin.set_reply(path, OriginReply::json(metadata.to_string()));
        origin.set_reply("/jwks", OriginReply::json(jwks.to_string()));
        (origin, own)
    };
    let keys = serde_json::json!({"keys": [{
        "kty": "OKP", "crv": "Ed25519", "kid": "one", "alg": "EdDSA", "use": "sig",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    }]});
    let (_well, well_issuer) = provider(keys.clone(), None);
    let (_foreign, foreign_issuer) = provider(keys, Some("https://evil.example.com"));
    let (_empty, empty_issuer) = provider(serde_json::json!({"keys": []}), None);
    let run = async |public_url: &str, mode: u32| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&key, permissions).unwrap();
        let (_folder, path) = file(&format!(
            "[server]\npublic_url = \"{public_url}\"\n[store]\ndata_dir = {:?}\n[a2a]\nkey_file = {key:?}\n\
             [identity]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"\n\
             [identity.providers.well]\nissuer = \"{well_issuer}\"\naudiences = [\"registry\"]\n\
             [identity.providers.foreign]\nissuer = \"{foreign_issuer}\"\naudiences = [\"registry\"]\n\
             [identity.providers.empty]\nissuer = \"{empty_issuer}\"\naudiences = [\"registry\"]\n",
            served.setup.data_folder()
        ));
        let finished = served
            .run_admin_command(&["doctor", "--config", &path])
            .await;
        assert_eq!(finished.status.code(), Some(1), "{finished:#?}");
        join_lines(&finished.stdout)
    };
    let says = |output: &str, words: &[&str]| {
        let is_line = |line: &str| words.iter().all(|word| line.contains(word));
        assert!(output.lines().any(is_line), "{words:?}: {output}");
    };

    let output = run(served.status_line.url(), 0o640).await;
    says(&output, &["warn secret files: a2a.key_file", "chmod go-r"]);
    says(&output, &["disk space: ", " MB are free"]);
    says(
        &output,
        &["ok   identity provider: well responds and publishes 1 keys"],
    );
    says(
        &output,
        &["fail identity provider: foreign", "another issuer"],
    );
    says(&output, &["fail identity provider: empty", "no usable key"]);
    says(&output, &["ok   public URL: ", "leads to this registry"]);
    says(
        &output,
        &["ok   proxy: requests come directly", "127.0.0.1"],
    );

    let output = run(other.status_line.url(), 0o606).await;
    says(
        &output,
        &["fail secret files: a2a.key_file", "replace the secret"],
    );
    says(&output, &["fail public URL: ", "leads to something other"]);

    let output = run("http://127.0.0.1:1", 0o600).await;
    says(&output, &["ok   secret files: "]);
    says(
        &output,
        &["fail public URL: ", "cannot be reached from here"],
    );
}

/// Whoever answers at the public URL gets no token unless it has the keys of the registry.
#[tokio::test]
async fn the_doctor_sends_its_token_to_no_stranger() {
    const KEYS: &str = "/.well-known/jwks.json";
    let stranger = Origin::start();
    stranger.set_reply(KEYS, OriginReply::json(r#"{"keys": []}"#));
    stranger.set_reply("/readyz", OriginReply::json("{}"));
    let (_folder, path) = file(&format!(
        "[server]\npublic_url = \"{}\"\n[store]\ndata_dir = \"/no/folder\"\n",
        stranger.url("")
    ));
    let registry = ["--registry", "http://127.0.0.1:1", "--token", "a2ar_secret"];
    let doctor = [&["doctor", "--config", &path], &registry[..]].concat();
    let finished = run_command(&doctor).await;
    assert!(
        join_lines(&finished.stdout).contains("warn proxy: "),
        "{finished:#?}"
    );
    let [keys] = &stranger.requests_to(KEYS)[..] else {
        panic!("the keys are asked for once: {finished:#?}");
    };
    assert_eq!(keys.header("authorization"), None);
    assert!(stranger.requests_to("/readyz").is_empty(), "{finished:#?}");
}

#[tokio::test]
async fn sentence_encoders_are_installed_and_shown() {
    let folder = TempDir::new().unwrap();
    let data = folder_of(&folder);
    let status = ["model", "status", "--data-dir", &data];
    let none = run_command(&status).await;
    assert_exit(&none, 0, "");
    let shown = join_lines(&none.stdout);
    assert!(
        shown.contains("built in") && shown.contains("model install"),
        "{none:#?}"
    );
    assert!(
        !Path::new(&data).exists(),
        "showing the status creates no file"
    );
    std::fs::create_dir(&data).unwrap();

    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny");
    let tiny = tiny.to_str().unwrap();
    let install = |source: &str| {
        let source = source.to_owned();
        let data = data.clone();
        async move { run_command(&["model", "install", &source, "--data-dir", &data]).await }
    };
    let first = install(tiny).await;
    assert_exit(&first, 0, "");
    assert!(
        join_lines(&first.stdout).contains("was installed, and is"),
        "{first:#?}"
    );
    let second = install(tiny).await;
    assert_exit(&second, 0, "");
    assert!(
        join_lines(&second.stdout).contains("is already installed and in use"),
        "{second:#?}"
    );

    let shown = run_command(&status).await;
    assert_exit(&shown, 0, "");
    let row = &shown.stdout[1];
    for cell in ["yes", "tiny", "32", "96", "mean", "0.2 MB"] {
        assert!(row.contains(cell), "{cell}: {shown:#?}");
    }
    let shown = run_command(&["model", "status", "--json", "--data-dir", &data]).await;
    let shown: serde_json::Value = serde_json::from_str(&join_lines(&shown.stdout)).unwrap();
    let model = &shown["models"][0];
    assert_eq!(model["current"], true, "{shown}");
    assert_eq!(model["pooling"], "mean", "{shown}");
    assert_eq!(model["id"].as_str().map(str::len), Some(64), "{shown}");

    assert_exit(&install("/no/model").await, 2, "/no/model");
    let (_other, path) = file("no folder");
    assert_exit(&install(&path).await, 2, "is not a folder");
    assert_exit(
        &install(folder.path().to_str().unwrap()).await,
        2,
        "config.json",
    );
}

#[tokio::test]
async fn an_installation_says_whether_searches_use_the_model() {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny");
    let tiny = tiny.to_str().unwrap();
    let folder = TempDir::new().unwrap();
    let data = folder.path().to_str().unwrap();
    let install = async |config: &str| {
        let (_kept, config) = file(config);
        let command = ["model", "install", tiny, "--data-dir", data];
        let options = ["--config", &config];
        let finished = run_command(&[&command[..], &options].concat()).await;
        let document = run_command(&[&command[..], &options, &["--json"]].concat()).await;
        assert_exit(&finished, 0, "");
        let document: serde_json::Value =
            serde_json::from_str(&join_lines(&document.stdout)).unwrap();
        (join_lines(&finished.stdout), document["model"].clone())
    };
    let (shown, model) = install("").await;
    assert!(
        shown.contains("was installed, and is now in use"),
        "{shown}"
    );
    assert_eq!(model["current"], true, "{model}");
    let installed = model["folder"].as_str().unwrap();
    let name = Path::new(installed).file_name().unwrap();
    let name = name.to_str().unwrap();

    let set = format!("set search.model = {name:?} and restart");
    let endpoint = "[embedding]\nurl = \"https://api.example.com/v1/embeddings\"\nmodel = \"m\"\n";
    for (config, reason) in [
        ("[search]\nmodel = \"off\"\n", "full text only"),
        ("[search]\nmodel = \"built-in\"\n", "the built-in model"),
        ("[search]\nmodel = \"another\"\n", "is not installed"),
        (endpoint, "embedding.url"),
    ] {
        let (shown, model) = install(config).await;
        for words in ["is already installed, but not in use", reason, &set] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert_eq!(model["current"], false, "{model}");
    }
    // What is said to be set has the effect.
    let (shown, model) = install(&format!("{endpoint}[search]\nmodel = {name:?}\n")).await;
    assert!(shown.contains("is already installed and in use"), "{shown}");
    assert!(shown.contains("from its next start"), "{shown}");
    assert_eq!(model["current"], true, "{model}");
}

/// How far the encoders are with the agents is in the database: before the first start and while it does not respond,
/// the rest of the table is shown.
#[tokio::test]
async fn model_status_without_its_database_says_not_known() {
    let database = Database::postgres().await;
    let folder = TempDir::new().unwrap();
    let data = folder_of(&folder);
    let migrate = ["migrate", "--data-dir", &data, "--database", database.url()];
    assert_exit(&run_command(&migrate).await, 0, "");
    let away = "postgres://nobody:hush-7@127.0.0.1:1/registry";
    for (database, progress, agents) in [
        (Some(database.url()), "not begun", json!(0)),
        (Some(away), "not known", Value::Null),
        (None, "not known", Value::Null),
    ] {
        let mut status = vec!["model", "status", "--data-dir", &data];
        status.extend(database.iter().flat_map(|url| ["--database", *url]));
        let shown = run_command(&status).await;
        assert_exit(&shown, 0, "");
        let table = join_lines(&shown.stdout);
        assert!(
            table.contains("built in") && table.contains(progress),
            "{table}"
        );
        status.push("--json");
        let document = run_command(&status).await;
        assert_exit(&document, 0, "");
        for printed in [&shown, &document] {
            assert!(!format!("{printed:?}").contains("hush-7"), "{printed:#?}");
        }
        let document: Value = serde_json::from_str(&join_lines(&document.stdout)).unwrap();
        assert_eq!(document["agents"], agents, "{document}");
        assert_eq!(document["models"][0]["agents"], Value::Null, "{document}");
    }
    assert!(!Path::new(&data).exists());
}
