//! A data folder whose database was lost, or that is in use: no registry starts there by mistake.

use std::path::{Path, PathBuf};

use sea_orm::ConnectionTrait as _;

use crate::support::both_databases;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_exit, join_lines, registry_command};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// A serving registry with one agent.
async fn with_an_agent(setup: RegistrySetup) -> (Origin, ServingRegistry) {
    let origin = Origin::start();
    origin.set_reply("/card.json", OriginReply::json(card_json("Echo", "repeat")));
    let registry = setup.approve_all().start().await;
    registry.publish(&origin.url("/card.json")).await;
    (origin, registry)
}

fn database_of(setup: &RegistrySetup) -> PathBuf {
    setup.data_folder().join("registry.sqlite")
}

fn log_of(file: &Path) -> PathBuf {
    file.with_extension("sqlite-wal")
}

/// The agents that the next start finds.
async fn agents_of(setup: &RegistrySetup) -> serde_json::Value {
    let registry = setup.start().await;
    let found = registry.search("").await["total"].clone();
    registry.stop().await;
    found
}

#[tokio::test]
async fn an_emptied_database_is_refused() {
    let (_origin, registry) = with_an_agent(RegistrySetup::new()).await;
    let setup = registry.setup.clone();
    registry.stop().await;
    let file = database_of(&setup);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, "").unwrap();
    for _ in 0..2 {
        let line = setup.start_expecting_failure().await;
        assert!(line.contains(file.to_str().unwrap()), "{line}");
        assert!(line.contains("is empty"), "{line}");
        assert!(line.contains("remove the file"), "{line}");
    }
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(agents_of(&setup).await, 1);
}

/// A file that was copied without its log has none of what is only in the log: at first nothing at all.
#[tokio::test]
async fn a_copy_without_its_log_is_refused() {
    let registry = RegistrySetup::new().start().await;
    let setup = registry.setup.clone();
    registry.program.kill().await;
    let (from, copied) = (database_of(&setup), RegistrySetup::new());
    let to = database_of(&copied);
    std::fs::create_dir(copied.data_folder()).unwrap();
    std::fs::copy(&from, &to).unwrap();
    let line = copied.start_expecting_failure().await;
    assert!(line.contains("holds no registry"), "{line}");
    assert!(line.contains(log_of(&to).to_str().unwrap()), "{line}");
    // Neither is a log without its file.
    std::fs::copy(log_of(&from), log_of(&to)).unwrap();
    std::fs::remove_file(&to).unwrap();
    let line = copied.start_expecting_failure().await;
    assert!(line.contains("is missing"), "{line}");
    assert!(!to.exists());
    // Together they are the registry.
    std::fs::copy(&from, &to).unwrap();
    assert_eq!(agents_of(&copied).await, 0);
    assert_eq!(agents_of(&setup).await, 0);
}

#[tokio::test]
async fn a_file_of_another_program_is_left_alone() {
    let setup = RegistrySetup::new();
    std::fs::create_dir(setup.data_folder()).unwrap();
    let file = database_of(&setup);
    let url = format!("sqlite://{}?mode=rwc", file.display());
    let other = sea_orm::Database::connect(url).await.unwrap();
    other
        .execute_unprepared("CREATE TABLE notes (id INTEGER)")
        .await
        .unwrap();
    other.close().await.unwrap();
    let before = std::fs::read(&file).unwrap();
    let line = setup.start_expecting_failure().await;
    assert!(line.contains("holds no registry"), "{line}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

/// A first start that was killed is repeated, at whatever moment it was killed.
#[tokio::test]
async fn a_first_start_that_was_killed_is_repeated() {
    for size in [None, Some(0), Some(4096)] {
        let setup = RegistrySetup::new();
        std::fs::create_dir(setup.data_folder()).unwrap();
        let file = database_of(&setup);
        let mark = setup.data_folder().join("registry.sqlite.unfinished");
        std::fs::write(&mark, "").unwrap();
        if let Some(size) = size {
            let whole = RegistrySetup::new();
            whole.start().await.program.kill().await;
            let mut bytes = std::fs::read(database_of(&whole)).unwrap();
            bytes.truncate(size);
            std::fs::write(&file, bytes).unwrap();
        }
        assert_eq!(agents_of(&setup).await, 0, "{size:?}");
        assert!(!mark.exists(), "{size:?}");
    }
}

/// Waits until the index knows every event that there is now, and returns the last one's number.
async fn indexed_to_the_end(registry: &ServingRegistry) -> i64 {
    let events = registry
        .get_as_admin("/v1/events?page_size=100")
        .await
        .expect_status(200);
    assert!(events["next_page_token"].is_null(), "{events}");
    let last = events["events"].as_array().unwrap().last().unwrap();
    let last = last["seq"].as_i64().unwrap();
    registry.wait_until_indexed(last).await;
    last
}

both_databases!(an_older_database_is_refused_until_it_is_accepted);

/// The index knows events that the database does not have: the start is refused, and one command accepts the database.
async fn an_older_database_is_refused_until_it_is_accepted(url: &str) {
    let (_origin, registry) = with_an_agent(RegistrySetup::new().with_database(url)).await;
    let setup = registry.setup.clone();
    let last = indexed_to_the_end(&registry).await;
    registry.stop().await;
    let operator = sea_orm::Database::connect(url).await.unwrap();
    let lost = format!("DELETE FROM events WHERE seq >= {last}");
    operator.execute_unprepared(&lost).await.unwrap();
    operator.close().await.unwrap();
    for _ in 0..2 {
        let line = setup.start_expecting_failure().await;
        assert!(
            line.contains(setup.data_folder().join("index").to_str().unwrap()),
            "{line}"
        );
        assert!(line.contains("a2a-registry reindex"), "{line}");
    }
    let data = setup.data_folder();
    let accepted = Program::run(reindex_command(&data, url)).await;
    assert_exit(&accepted, 0, "");
    assert!(
        join_lines(&accepted.stdout).contains("1 agents"),
        "{accepted:?}"
    );
    assert_eq!(agents_of(&setup).await, 1);
}

fn reindex_command(data: &Path, url: &str) -> tokio::process::Command {
    let nobody = "http://127.0.0.1:1";
    let mut command = registry_command(["reindex", "--registry", nobody, "--database", url]);
    command.arg("--data-dir").arg(data);
    command
}

/// The file is removed to begin anew, as the refusal of an emptied one says; the index of the old registry has to be
/// accepted too, because the file may have been removed by mistake.
#[tokio::test]
async fn a_removed_database_begins_anew_only_when_that_is_accepted() {
    let (_origin, registry) = with_an_agent(RegistrySetup::new()).await;
    let setup = registry.setup.clone();
    indexed_to_the_end(&registry).await;
    registry.stop().await;
    let file = database_of(&setup);
    std::fs::remove_file(&file).unwrap();
    let line = setup.start_expecting_failure().await;
    assert!(line.contains("a2a-registry reindex"), "{line}");
    let url = format!("sqlite:{}?mode=rwc", file.display());
    let accepted = Program::run(reindex_command(&setup.data_folder(), &url)).await;
    assert_exit(&accepted, 0, "");
    assert_eq!(agents_of(&setup).await, 0);
}

/// A removed database is put back after the refusal. The one that the refused start has begun leaves no log, which SQLite
/// would apply to the old file.
#[tokio::test]
async fn a_removed_database_can_be_put_back_after_the_refusal() {
    let (_origin, registry) = with_an_agent(RegistrySetup::new()).await;
    let setup = registry.setup.clone();
    indexed_to_the_end(&registry).await;
    registry.stop().await;
    let file = database_of(&setup);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let line = setup.start_expecting_failure().await;
    assert!(line.contains("restore the right database"), "{line}");
    assert!(!log_of(&file).exists());
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(agents_of(&setup).await, 1);
}

/// The data folder and the database belong to the first process, also when somebody has deleted the lock files.
#[tokio::test]
async fn deleted_lock_files_let_no_second_process_in() {
    let setup = RegistrySetup::new();
    let elsewhere = setup.scratch_folder().join("elsewhere.sqlite");
    let url = format!("sqlite:{}?mode=rwc", elsewhere.display());
    let registry = setup.with_database(&url).start().await;
    let setup = registry.setup.clone();
    std::fs::remove_file(setup.data_folder().join("lock")).unwrap();
    std::fs::remove_file(setup.scratch_folder().join("elsewhere.sqlite.lock")).unwrap();
    let line = setup.start_expecting_failure().await;
    assert!(line.contains("another process is serving"), "{line}");
    // Another folder with the same database.
    let line = RegistrySetup::new()
        .with_database(&url)
        .start_expecting_failure()
        .await;
    assert!(line.contains("another process is serving"), "{line}");
    assert!(line.contains("elsewhere.sqlite"), "{line}");
    registry.stop().await;
    assert_eq!(agents_of(&setup).await, 0);
}
