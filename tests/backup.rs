//! Backups of a registry that serves, and registries that are restored from them (docs/operate/backup.md).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use a2a_registry_store::Store;
use a2a_registry_store::events::highest_event_seq;
use a2a_registry_store::settings::setting_value;
use reqwest::{Method, StatusCode};
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::watch;

use crate::policy_pages::PageSession;
use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::both_databases;
use crate::support::cards::{card_json, minimal_card_json};
use crate::support::database::{Database, store_options};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{
    FinishedProgram, Program, after_shell_commands, assert_exit, join_lines, registry_command,
};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// Number of registrations before and after the backup.
const WRITES: usize = 20;

/// A new database of the same kind.
async fn new_database_like(url: &str) -> Database {
    match url.starts_with("sqlite:") {
        true => Database::sqlite(),
        false => Database::postgres().await,
    }
}

fn offline_command(words: &[&str], data: &Path, url: &str) -> Command {
    let mut command = registry_command(words);
    command
        .arg("--data-dir")
        .arg(data)
        .args(["--database", url]);
    command
}

async fn run_offline(words: &[&str], data: &Path, url: &str) -> FinishedProgram {
    Program::run(offline_command(words, data, url)).await
}

/// Backs up a registry and returns the folder and the manifest.
async fn back_up(setup: &RegistrySetup, url: &str, name: &str) -> (PathBuf, Value) {
    let folder = setup.scratch_folder().join(name);
    let words = ["backup", folder.to_str().unwrap(), "--json"];
    let ended = run_offline(&words, &setup.data_folder(), url).await;
    assert_exit(&ended, 0, "");
    let mut printed: Value = serde_json::from_str(&join_lines(&ended.stdout)).unwrap();
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(printed["manifest"].take(), manifest);
    (folder, manifest)
}

/// Registrations by one client, and which of them were acknowledged.
struct Load {
    acknowledged: Mutex<BTreeSet<String>>,
    count: watch::Sender<usize>,
}

impl Load {
    /// Registers one card after the other until the registry has ended.
    async fn run(&self, api: &RegistryClient, origin: &Origin) {
        for number in 0.. {
            let path = format!("/load/{number}.json");
            let card = minimal_card_json(&format!("Load {number}"));
            origin.set_reply(&path, OriginReply::json(card));
            let url = origin.url(&path);
            let request = api.admin_request(Method::POST, "/v1/domains");
            let Ok(answer) = request.json(&json!({ "card_url": url })).send().await else {
                return;
            };
            assert_eq!(answer.status(), 202);
            self.acknowledged.lock().unwrap().insert(url);
            self.count.send_modify(|count| *count += 1);
        }
    }

    async fn wait_for_more(&self) {
        let now = *self.count.borrow();
        let mut count = self.count.subscribe();
        count
            .wait_for(|count| *count >= now + WRITES)
            .await
            .unwrap();
    }

    fn acknowledged(&self) -> BTreeSet<String> {
        self.acknowledged.lock().unwrap().clone()
    }
}

/// The URLs of all sources.
async fn source_urls(registry: &ServingRegistry) -> BTreeSet<String> {
    let list = registry
        .get_as_admin("/v1/domains?page_size=100")
        .await
        .expect_status(200);
    let domains = list["domains"].as_array().unwrap();
    let sources = domains
        .iter()
        .flat_map(|domain| domain["sources"].as_array().unwrap());
    let urls = sources.map(|source| source["url"].as_str().unwrap().to_owned());
    urls.collect()
}

async fn last_event(url: &str) -> i64 {
    let store = Store::connect(&store_options(url)).await.unwrap();
    let last = highest_event_seq(&store).await.unwrap();
    store.close().await.unwrap();
    last
}

/// GET with this token.
async fn status_with_token(registry: &ServingRegistry, token: &str) -> StatusCode {
    let request = registry.request(Method::GET, "/v1/me");
    let answer = request.bearer_auth(token).send().await.unwrap();
    answer.status()
}

both_databases!(a_lost_registry_is_restored);

/// The drill: a backup under load, more writes, the loss of the database, and a restore into an empty one.
async fn a_lost_registry_is_restored(url: &str) {
    let setup = RegistrySetup::new().approve_all().with_database(url);
    let registry = setup.start_without_proxy().await;
    // Domains of their own, because an agent limit applies to each.
    let (origin, load_origin) = (Origin::start(), Origin::start());
    origin.set_reply("/kept.json", OriginReply::json(card_json("Kept", "repeat")));
    let kept = registry.publish(&origin.url("/kept.json")).await;
    let body = json!({"account": "ci", "role": "publisher", "name": "build"});
    let token = registry.post_as_admin("/v1/tokens", &body).await;
    let token = token.expect_status(201);
    let secret = token["secret"].as_str().unwrap();
    PageSession::sign_in(&registry, ADMIN_TOKEN).await;

    let load = Arc::new(Load {
        acknowledged: Mutex::default(),
        count: watch::Sender::new(0),
    });
    let writing = {
        let (load, api) = (Arc::clone(&load), registry.api.clone());
        tokio::spawn(async move { load.run(&api, &load_origin).await })
    };
    load.wait_for_more().await;
    let before = load.acknowledged();
    let (backup, manifest) = back_up(&setup, url, "backup").await;
    load.wait_for_more().await;

    let id = token["id"].as_str().unwrap();
    let revoke = registry.admin_request(Method::DELETE, &format!("/v1/tokens/{id}"));
    assert!(revoke.send().await.unwrap().status().is_success());
    assert_eq!(status_with_token(&registry, secret).await, 401);
    origin.set_reply("/lost.json", OriginReply::json(card_json("Lost", "forget")));
    registry.publish(&origin.url("/lost.json")).await;
    let page = registry.get_as_admin("/v1/events?page_size=1").await;
    let page_token = page.expect_status(200)["next_page_token"]
        .as_str()
        .unwrap()
        .to_owned();
    registry.program.kill().await;
    writing.await.unwrap();
    let lost = last_event(url).await;

    let empty = new_database_like(url).await;
    let words = [
        "restore",
        backup.to_str().unwrap(),
        "--compare-with",
        url,
        "--yes",
        "--json",
    ];
    let ended = run_offline(&words, &setup.data_folder(), empty.url()).await;
    assert_exit(&ended, 0, "the token is valid again");
    let printed: Value = serde_json::from_str(&join_lines(&ended.stdout)).unwrap();
    assert_eq!(printed["lost"]["last_event"], lost);
    assert!(printed["lost"]["act_count"].as_u64().unwrap() > WRITES as u64);
    let first = &printed["lost"]["acts"][0];
    assert_eq!(
        (&first["kind"], &first["subject"]),
        (&json!("token.revoked"), &json!(id))
    );

    let restored = setup.clone().with_database(empty.url()).start().await;
    let found = source_urls(&restored).await;
    assert!(
        found.is_superset(&before),
        "{:?}",
        before.difference(&found)
    );
    assert_eq!(status_with_token(&restored, secret).await, 200);
    let sessions = restored
        .get_as_admin("/v1/sessions")
        .await
        .expect_status(200);
    assert_eq!(sessions["sessions"], json!([]));
    assert_cursors_of_before_are_refused(&restored, &manifest, lost, &page_token).await;
    // The index in the data folder knew the lost agent.
    let hit = restored.wait_for_hit("skill=repeat").await;
    assert_eq!(hit.summary.id.to_string(), kept);
    assert_eq!(restored.search("skill=forget").await["total"], 0);
    origin.set_reply("/new.json", OriginReply::json(card_json("New", "invent")));
    restored.publish(&origin.url("/new.json")).await;
    restored.wait_for_hit("skill=invent").await;
    restored.stop().await;
}

async fn assert_cursors_of_before_are_refused(
    restored: &ServingRegistry,
    manifest: &Value,
    lost: i64,
    page_token: &str,
) {
    let last = manifest["last_event"].as_i64().unwrap();
    assert!(lost > last);
    for after in [last + 1, lost] {
        let path = format!("/v1/events?after={after}");
        let list = restored.get_as_admin(&path);
        let problem = list.await.expect_problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], "/after", "{problem}");
        let stream = restored
            .admin_request(Method::GET, "/v1/events")
            .header("accept", "text/event-stream")
            .header("last-event-id", after);
        let problem = ApiResponse::send(stream).await;
        let problem = problem.expect_problem(400, "invalid-request");
        assert_eq!(
            problem["errors"][0]["pointer"], "/Last-Event-ID",
            "{problem}"
        );
    }
    let path = format!("/v1/events?page_size=1&page_token={page_token}");
    let problem = restored.get_as_admin(&path).await;
    problem.expect_problem(400, "invalid-request");
    // Those who have read no lost event learn of the restore.
    let mut feed = restored.open_event_stream(last).await;
    let first = feed.next().await;
    assert_eq!(first["kind"], "registry.restored", "{first}");
    assert_eq!(first["data"]["backup_event"], last);
    assert!(first["seq"].as_i64().unwrap() > lost);
}

both_databases!(a_restore_overwrites_nothing);

/// Whatever is refused leaves the backup, the database and the registry as they are.
async fn a_restore_overwrites_nothing(url: &str) {
    let setup = RegistrySetup::new().with_database(url);
    let registry = setup.start().await;
    let (backup, _) = back_up(&setup, url, "backup").await;
    let folder = backup.to_str().unwrap();
    let elsewhere = TempDir::new().unwrap();
    let again = run_offline(&["backup", folder], &setup.data_folder(), url).await;
    assert_exit(&again, 2, "is not empty");

    let restore = ["restore", folder, "--yes"];
    let in_use = run_offline(&restore, &setup.data_folder(), url).await;
    assert_exit(&in_use, 2, "another process");
    let in_use = run_offline(&restore, elsewhere.path(), url).await;
    assert_exit(&in_use, 2, "another process");
    registry.stop().await;
    let not_empty = run_offline(&restore, elsewhere.path(), url).await;
    assert_exit(&not_empty, 2, "not empty");

    let empty = new_database_like(url).await;
    let unconfirmed = run_offline(&["restore", folder], elsewhere.path(), empty.url()).await;
    assert_eq!(unconfirmed.status.code(), Some(2), "{unconfirmed:?}");
    let said = join_lines(&unconfirmed.stderr);
    assert!(said.contains("confirm with --yes"), "{said}");
    assert!(said.contains("1 tokens, 0 holds"), "{said}");
    let other = match url.starts_with("sqlite:") {
        true => Database::postgres().await,
        false => Database::sqlite(),
    };
    let other_kind = run_offline(&restore, elsewhere.path(), other.url()).await;
    assert_exit(&other_kind, 2, "a database of the same kind");

    let ended = run_offline(&restore, elsewhere.path(), empty.url()).await;
    assert_exit(&ended, 0, "");
    let twice = run_offline(&restore, elsewhere.path(), empty.url()).await;
    assert_exit(&twice, 2, "not empty");
    let restored = RegistrySetup::new().with_database(empty.url());
    restored.start().await.stop().await;
}

both_databases!(
    a_backup_that_is_restored_twice_gives_no_event_number_twice,
    a_restore_that_is_killed_can_be_repeated,
    a_version_restores_a_backup_of_a_newer_schema_that_permits_it
);

/// What was read between two restores of a backup is lost too.
async fn a_backup_that_is_restored_twice_gives_no_event_number_twice(url: &str) {
    let setup = RegistrySetup::new().with_database(url);
    let registry = setup.start().await;
    let (backup, manifest) = back_up(&setup, url, "backup").await;
    registry.stop().await;
    let restore = ["restore", backup.to_str().unwrap(), "--yes"];
    let data = TempDir::new().unwrap();
    let first = new_database_like(url).await;
    let ended = run_offline(&restore, data.path(), first.url()).await;
    assert_exit(&ended, 0, "");
    let restored = RegistrySetup::new().with_database(first.url());
    let restored = restored.start().await;
    let body = json!({"account": "ci", "role": "publisher", "name": "build"});
    let token = restored.post_as_admin("/v1/tokens", &body).await;
    token.expect_status(201);
    restored.stop().await;
    let given = last_event(first.url()).await;

    let second = new_database_like(url).await;
    let ended = run_offline(&restore, data.path(), second.url()).await;
    assert_exit(&ended, 0, "");
    let restored = RegistrySetup::new().with_database(second.url());
    let restored = restored.start().await;
    let path = format!("/v1/events?after={given}");
    let list = restored.get_as_admin(&path);
    let problem = list.await.expect_problem(400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "/after", "{problem}");
    let mut feed = restored
        .open_event_stream(manifest["last_event"].as_i64().unwrap())
        .await;
    let event = feed.next().await;
    assert_eq!(event["kind"], "registry.restored", "{event}");
    assert!(event["seq"].as_i64().unwrap() > given, "{event}");
    drop(feed);
    restored.stop().await;
}

/// After the way back from an upgrade the older version makes backups of the newer schema, and has to restore them.
async fn a_version_restores_a_backup_of_a_newer_schema_that_permits_it(url: &str) {
    let setup = RegistrySetup::new().with_database(url);
    setup.start().await.stop().await;
    let newer = sea_orm::Database::connect(url).await.unwrap();
    for statement in [
        "INSERT INTO seaql_migrations VALUES ('m9999_later', 1)",
        "INSERT INTO schema_compatibility VALUES ('m9999_later', '0.1.0')",
    ] {
        newer.execute_unprepared(statement).await.unwrap();
    }
    newer.close().await.unwrap();
    let (backup, _) = back_up(&setup, url, "backup").await;
    let (empty, data) = (new_database_like(url).await, TempDir::new().unwrap());
    let restore = ["restore", backup.to_str().unwrap(), "--yes"];
    let ended = run_offline(&restore, data.path(), empty.url()).await;
    assert_exit(&ended, 0, "");
    let restored = RegistrySetup::new().with_database(empty.url());
    let restored = restored.start().await;
    restored.program.wait_for_line("m9999_later").await;
    restored.stop().await;
}

#[tokio::test]
async fn only_a_complete_and_unchanged_backup_is_restored() {
    let setup = RegistrySetup::new();
    let registry = setup.start().await;
    let file = setup.data_folder().join("registry.sqlite");
    let url = format!("sqlite:{}?mode=rwc", file.display());
    let (backup, manifest) = back_up(&setup, &url, "backup").await;
    registry.stop().await;
    let path = backup.join("manifest.json");
    let elsewhere = TempDir::new().unwrap();
    let data = elsewhere.path().join("data");
    let target = format!("sqlite:{}?mode=rwc", data.join("registry.sqlite").display());
    let refused = async |words: &str| {
        let restore = ["restore", backup.to_str().unwrap(), "--yes"];
        let ended = run_offline(&restore, &data, &target).await;
        assert_exit(&ended, 2, words);
        assert!(!data.exists(), "{words}");
    };
    let write = |manifest: &Value| std::fs::write(&path, manifest.to_string()).unwrap();

    std::fs::remove_file(&path).unwrap();
    refused("has no manifest.json").await;
    std::fs::write(&path, "{").unwrap();
    refused("manifest.json is not valid").await;
    let mut newer = manifest.clone();
    newer["format"] = json!(2);
    write(&newer);
    refused("its format 2 is not known").await;
    let mut newer = manifest.clone();
    newer["schema"] = json!(["m0001_people", "m9999_later"]);
    write(&newer);
    refused("m9999_later is not of this version").await;
    let mut excluded = manifest.clone();
    excluded["schema"]
        .as_array_mut()
        .unwrap()
        .push(json!("m9999_later"));
    excluded["min_versions"]["m9999_later"] = json!("99.0.0");
    write(&excluded);
    refused("m9999_later is of a newer version and requires version 99.0.0").await;
    let mut outside = manifest.clone();
    outside["files"]["../registry.sqlite"] = outside["files"]["settings.json"].clone();
    write(&outside);
    refused("names a file outside").await;
    let mut incomplete = manifest.clone();
    let files = incomplete["files"].as_object_mut().unwrap();
    files.remove("registry.sqlite").unwrap();
    write(&incomplete);
    refused("does not name registry.sqlite").await;
    write(&manifest);
    let copy = backup.join("registry.sqlite");
    let mut bytes = std::fs::read(&copy).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&copy, &bytes).unwrap();
    refused("does not match the manifest").await;
    std::fs::remove_file(&copy).unwrap();
    refused("registry.sqlite").await;
}

/// Whether any file below a folder contains these bytes.
fn contains(folder: &Path, wanted: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return contains(&path, wanted);
        }
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(wanted.len()).any(|window| window == wanted)
    })
}

both_databases!(secrets_are_in_a_backup_only_on_request);

async fn secrets_are_in_a_backup_only_on_request(url: &str) {
    use std::os::unix::fs::PermissionsExt as _;

    let setup = RegistrySetup::new().with_database(url);
    setup.start().await.stop().await;
    let model = setup.data_folder().join("models/0123456789abcdef");
    std::fs::create_dir_all(&model).unwrap();
    std::fs::write(model.join("config.json"), "{}").unwrap();
    let store = Store::connect(&store_options(url)).await.unwrap();
    let mut secrets = Vec::new();
    for key in ["a2a_card_key", "page_token_key", "sign_in_attempt_key"] {
        secrets.push(setting_value(&store, key).await.unwrap().unwrap());
    }
    store.close().await.unwrap();

    let (without, manifest) = back_up(&setup, url, "without").await;
    assert_eq!(manifest["secret_files"], json!({}));
    for secret in &secrets {
        assert!(!contains(&without, secret.as_bytes()));
    }
    let with = setup.scratch_folder().join("with");
    let config = setup.scratch_folder().join("registry.toml");
    let words = [
        "backup",
        with.to_str().unwrap(),
        "--with-secrets",
        "--config",
        config.to_str().unwrap(),
    ];
    let ended = run_offline(&words, &setup.data_folder(), url).await;
    assert_exit(&ended, 0, "");
    assert!(contains(&with, secrets[0].as_bytes()));
    assert!(!contains(&with, secrets[1].as_bytes()));
    let copied = with.join("secrets/01-registry.toml");
    assert_eq!(
        std::fs::read(&copied).unwrap(),
        std::fs::read(&config).unwrap()
    );
    // PostgreSQL has no key file unless one is configured.
    let key = setup.data_folder().join("secrets.key");
    if let Ok(key) = std::fs::read(key) {
        assert!(contains(&with, &key) && !contains(&without, &key));
    } else {
        assert!(url.starts_with("postgres"), "{url}");
    }
    for path in [
        &copied,
        &with.join("settings.json"),
        &with.join("manifest.json"),
    ] {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }

    let (empty, data) = (new_database_like(url).await, TempDir::new().unwrap());
    let restore = ["restore", with.to_str().unwrap(), "--yes"];
    let ended = run_offline(&restore, data.path(), empty.url()).await;
    assert_exit(&ended, 0, "");
    let said = join_lines(&ended.stdout);
    assert!(said.contains("secrets/01-registry.toml"), "{said}");
    let model = data.path().join("models/0123456789abcdef/config.json");
    assert_eq!(std::fs::read(model).unwrap(), b"{}");
    let store = Store::connect(&store_options(empty.url())).await.unwrap();
    let key = setting_value(&store, "a2a_card_key").await.unwrap();
    assert_eq!(key.as_ref(), Some(&secrets[0]));
    store.close().await.unwrap();
}

/// A `pg_restore` that does this, `$@` being its arguments, instead of restoring.
fn with_pg_restore(mut command: Command, folder: &Path, act: &str) -> Command {
    use std::os::unix::fs::PermissionsExt as _;

    let script = format!(
        "#!/bin/sh\nPATH=\"${{PATH#*:}}\"\n[ \"$1\" = --version ] && exec pg_restore --version\n{act}\n"
    );
    let program = folder.join("pg_restore");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.display()));
    command
}

/// A restore that is killed in the middle leaves what the next one restores into. On PostgreSQL one that was killed
/// after the tables were there says what to do, and no registry starts.
async fn a_restore_that_is_killed_can_be_repeated(url: &str) {
    let setup = RegistrySetup::new().with_database(url);
    let registry = setup.start().await;
    let (backup, manifest) = back_up(&setup, url, "backup").await;
    registry.stop().await;
    let restore = ["restore", backup.to_str().unwrap(), "--yes"];
    let (data, programs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let empty = new_database_like(url).await;
    let command = offline_command(&restore, data.path(), empty.url());
    let file = store_options(empty.url()).sqlite_file();
    let killed = match &file {
        // The kernel kills whoever writes a longer file.
        Some(_) => after_shell_commands("ulimit -c 0; ulimit -f 64", &command),
        None => with_pg_restore(command, programs.path(), "kill -9 $PPID"),
    };
    let ended = Program::run(killed).await;
    assert_eq!(ended.status.code(), None, "{ended:?}");
    if let Some(file) = &file {
        let left = format!("{}.restoring.unfinished", file.display());
        assert!(Path::new(&left).exists() && !file.exists());
    }
    // The server notices only by and by that the process that had reserved the database has ended.
    eventually("the restore is repeated", async || {
        let again = run_offline(&restore, data.path(), empty.url()).await;
        again.status.success().then_some(())
    })
    .await;
    assert!(last_event(empty.url()).await > manifest["last_event"].as_i64().unwrap());
    let restored = RegistrySetup::new().with_database(empty.url());
    restored.start().await.stop().await;
    if file.is_some() {
        return;
    }

    let half = Database::postgres().await;
    let command = offline_command(&restore, data.path(), half.url());
    let act = "pg_restore \"$@\" && kill -9 $PPID";
    let ended = Program::run(with_pg_restore(command, programs.path(), act)).await;
    assert_eq!(ended.status.code(), None, "{ended:?}");
    let refused = eventually("what was restored is found", async || {
        let again = run_offline(&restore, data.path(), half.url()).await;
        let is_free = !join_lines(&again.stderr).contains("another process");
        is_free.then_some(again)
    })
    .await;
    assert_exit(
        &refused,
        2,
        "create an empty database and restore into that",
    );
    let line = RegistrySetup::new()
        .with_database(half.url())
        .start_expecting_failure()
        .await;
    assert!(line.contains("a restore into it was interrupted"), "{line}");
}

/// A restore records the migrations of a PostgreSQL database last; without them it was interrupted.
#[tokio::test]
async fn no_registry_starts_on_a_database_that_was_restored_in_part() {
    let database = Database::postgres().await;
    let setup = RegistrySetup::new().with_database(database.url());
    setup.start().await.stop().await;
    let operator = sea_orm::Database::connect(database.url()).await.unwrap();
    operator
        .execute_unprepared("DELETE FROM seaql_migrations")
        .await
        .unwrap();
    operator.close().await.unwrap();
    let line = setup.start_expecting_failure().await;
    assert!(line.contains("a restore into it was interrupted"), "{line}");
}

/// A `pg_dump` that writes down how it was started, and then fails.
const FAILING_PG_DUMP: &str = "#!/bin/sh\n\
    echo \"$@\" >> \"$0.arguments\"\n\
    echo \"$PGPASSWORD\" >> \"$0.password\"\n\
    [ \"$1\" = --version ] && { echo 'pg_dump (PostgreSQL) 99.1'; exit 0; }\n\
    echo 'pg_dump: error: the disk is gone' >&2\n\
    exit 3\n";

/// The password reaches PostgreSQL's program in its environment only; and a backup that failed is never restored.
#[tokio::test]
async fn a_failed_dump_is_no_backup_and_shows_no_password() {
    use std::os::unix::fs::PermissionsExt as _;

    let database = Database::postgres().await;
    let setup = RegistrySetup::new().with_database(database.url());
    setup.start().await.stop().await;
    let programs = setup.scratch_folder().join("bin");
    std::fs::create_dir(&programs).unwrap();
    let program = programs.join("pg_dump");
    std::fs::write(&program, FAILING_PG_DUMP).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut url: url::Url = database.url().parse().unwrap();
    url.set_password(Some("hush%207")).unwrap();

    let backup = setup.scratch_folder().join("backup");
    let words = ["backup", backup.to_str().unwrap()];
    let mut command = offline_command(&words, &setup.data_folder(), url.as_str());
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", programs.display()));
    let ended = Program::run(command).await;
    assert_exit(&ended, 2, "the disk is gone");
    assert!(!join_lines(&ended.stderr).contains("hush"), "{ended:?}");
    let noted =
        |suffix: &str| std::fs::read_to_string(programs.join(format!("pg_dump.{suffix}"))).unwrap();
    assert!(noted("arguments").contains("--snapshot="));
    assert!(!noted("arguments").contains("hush"));
    assert!(noted("password").contains("hush 7"));

    let restore = ["restore", backup.to_str().unwrap(), "--yes"];
    let ended = run_offline(&restore, &setup.data_folder(), database.url()).await;
    assert_exit(&ended, 2, "has no manifest.json");

    let none = setup.scratch_folder().join("none");
    let words = ["backup", none.to_str().unwrap()];
    let mut command = offline_command(&words, &setup.data_folder(), url.as_str());
    command.env("PATH", "/nonexistent");
    let ended = Program::run(command).await;
    assert_exit(&ended, 2, "install the client programs");
}
