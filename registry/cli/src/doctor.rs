//! `doctor`: checks of the installation, one line each.

mod machine;
mod network;

use std::path::Path;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_crawler::dns::{HickoryResolver, Resolver};
use a2a_registry_core::config::Config;
use a2a_registry_core::file_descriptors::DescriptorBudget;
use a2a_registry_server::maintenance::{self, DamagedCard, DatabaseFacts};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde::Serialize;
use serde_json::Value;

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::offline_args::OfflineArgs;

/// Time limit for resolving a name.
const DNS_TIMEOUT: Duration = Duration::from_secs(5);
/// Name that is reserved for documentation (RFC 2606 section 3), so it always exists.
const DNS_NAME: &str = "example.com";

/// Number of damaged cards that are listed one by one.
const MAX_LISTED_CARDS: usize = 100;

/// Arguments of `doctor`.
#[derive(Args, Debug, Clone)]
pub struct DoctorArgs {
    #[command(flatten)]
    local: OfflineArgs,
    /// Hash every stored card too, and list damaged ones
    #[arg(long)]
    verify: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckStatus {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Clone, Serialize)]
struct DoctorCheck {
    name: &'static str,
    verdict: CheckStatus,
    detail: String,
}

impl DoctorCheck {
    fn new(name: &'static str, verdict: CheckStatus, detail: impl Into<String>) -> Self {
        Self {
            name,
            verdict,
            detail: detail.into(),
        }
    }
}

/// Checks everything without changing anything: done if nothing fails.
pub async fn run_doctor(
    arguments: &DoctorArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let mut checks = Vec::new();
    match arguments.local.load_config() {
        Err(CommandError::Failed(line)) => {
            checks.push(DoctorCheck::new("configuration", CheckStatus::Fail, line))
        }
        Err(other) => return Err(other),
        Ok(config) => {
            checks.push(DoctorCheck::new(
                "configuration",
                CheckStatus::Ok,
                "is valid",
            ));
            checks.push(check_file_descriptors(DescriptorBudget::for_process(
                &config,
            )));
            checks.extend(machine::check_secret_files(&config));
            checks.push(check_data_folder(&config.store.data_dir));
            checks.extend(machine::check_disk_space(&config.store.data_dir));
            checks.push(check_database(&config).await);
            let facts = read_database_facts(&config).await;
            checks.extend(facts.clock_lead.map(machine::check_database_clock));
            checks.extend(check_account_names(&config).await);
            checks.extend(check_secrets_key(&config).await);
            if arguments.verify {
                checks.extend(check_stored_cards(&config).await);
            }
            checks.extend(network::check_identity_providers(&config).await);
            let registry_id = facts.registry_id.as_deref();
            checks.extend(network::check_public_url(&config, client, registry_id).await);
        }
    }
    checks.push(check_name_resolution().await);
    checks.push(check_registry(client).await);
    let failed = checks
        .iter()
        .any(|check| check.verdict == CheckStatus::Fail);
    console.print_result(&checks, || {
        for check in &checks {
            let status_text = match check.verdict {
                CheckStatus::Ok => "ok  ",
                CheckStatus::Warn => "warn",
                CheckStatus::Fail => "fail",
            };
            console.print_line(&format!("{status_text} {}: {}", check.name, check.detail))?;
        }
        Ok(())
    })?;
    Ok(CommandOutcome::done_if(!failed))
}

/// Whether a process started from here can open as many files as it needs.
fn check_file_descriptors(budget: DescriptorBudget) -> DoctorCheck {
    let check = |verdict, detail| DoctorCheck::new("file descriptors", verdict, detail);
    match (budget.shortage_message(), budget.summary()) {
        (Some(line), _) => check(CheckStatus::Fail, line),
        (None, (true, line)) => check(CheckStatus::Ok, line),
        (None, (false, line)) => check(CheckStatus::Warn, line),
    }
}

fn check_data_folder(path: &Path) -> DoctorCheck {
    let check = |verdict, detail| DoctorCheck::new("data folder", verdict, detail);
    let path_text = path.display();
    if !path.exists() {
        return check(
            CheckStatus::Warn,
            format!("{path_text} does not exist yet; the first start creates it"),
        );
    }
    match tempfile::tempfile_in(path) {
        Ok(_) => check(CheckStatus::Ok, format!("{path_text} is writable")),
        Err(error) => check(
            CheckStatus::Fail,
            format!("{path_text} is not writable: {error}; change its owner, or give --data-dir"),
        ),
    }
}

async fn check_database(config: &Config) -> DoctorCheck {
    let check = |verdict, detail: String| DoctorCheck::new("database", verdict, detail);
    if is_default_database_missing(config) {
        return check(
            CheckStatus::Warn,
            "it does not exist yet; the first start creates it".into(),
        );
    }
    match maintenance::ping_database(config).await {
        Ok(what) => check(CheckStatus::Ok, what),
        Err(error) => check(CheckStatus::Fail, error.to_string()),
    }
}

/// Facts of the database; none if it does not exist or respond, which another check reports.
async fn read_database_facts(config: &Config) -> DatabaseFacts {
    if is_default_database_missing(config) {
        return DatabaseFacts::default();
    }
    let facts = maintenance::read_database_facts(config, &SystemClock).await;
    facts.unwrap_or_default()
}

/// Whether no database is configured, and the one in the data folder does not exist yet.
fn is_default_database_missing(config: &Config) -> bool {
    let store = &config.store;
    let is_default = store.database.is_empty() && store.database_file.is_none();
    is_default && !store.data_dir.join("registry.sqlite").exists()
}

/// Hashes every stored card: one result for all, and one for each damaged card.
async fn check_stored_cards(config: &Config) -> Vec<DoctorCheck> {
    let check = |verdict, detail: String| DoctorCheck::new("cards", verdict, detail);
    // Hidden if standard error is not a terminal.
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let verified = maintenance::verify_cards(config, MAX_LISTED_CARDS, |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    })
    .await;
    bar.finish_and_clear();
    let verified = match verified {
        Ok(verified) => verified,
        Err(error) => return vec![check(CheckStatus::Fail, error.to_string())],
    };
    let count = verified.checked;
    if verified.damaged == 0 {
        return vec![check(
            CheckStatus::Ok,
            format!("all {count} stored cards match their digests"),
        )];
    }
    let summary = format!(
        "{} of {count} stored cards are damaged and not served; restore their bytes from a backup, \
         or wait until their agents publish others",
        verified.damaged
    );
    let named = verified.named_damaged.iter().map(damaged_card_check);
    let mut checks = vec![check(CheckStatus::Fail, summary)];
    checks.extend(named);
    checks
}

fn damaged_card_check(card: &DamagedCard) -> DoctorCheck {
    let versions = card.versions.iter();
    let versions: Vec<String> = versions
        .map(|(version, agent)| format!("version {version} of agent {agent}"))
        .collect();
    let detail = match versions.is_empty() {
        true => format!("{}, which no version uses", card.digest),
        false => format!("{}, {}", card.digest, versions.join(", ")),
    };
    DoctorCheck::new("damaged card", CheckStatus::Fail, detail)
}

/// Accounts and groups whose names have another meaning; empty if there are none, or the database does not respond.
async fn check_account_names(config: &Config) -> Vec<DoctorCheck> {
    if is_default_database_missing(config) {
        return Vec::new();
    }
    let reserved = maintenance::find_reserved_names(config)
        .await
        .unwrap_or_default();
    let check = |text: String| DoctorCheck::new("account names", CheckStatus::Warn, text);
    reserved.into_iter().map(check).collect()
}

/// Whether the key of stored secrets opens all of them; `None` if there is neither a key nor a secret.
async fn check_secrets_key(config: &Config) -> Option<DoctorCheck> {
    let check = |verdict, detail: String| Some(DoctorCheck::new("secrets key", verdict, detail));
    let found = match maintenance::check_secrets(config).await {
        Ok(found) => found,
        Err(error) => return check(CheckStatus::Fail, error.to_string()),
    };
    let (all, unopened) = (found.sealed, found.unopened);
    match (found.has_key, all) {
        (false, 0) => None,
        (true, 0) => check(
            CheckStatus::Ok,
            "is valid; nothing is encrypted with it yet".into(),
        ),
        (true, _) if unopened == 0 => check(
            CheckStatus::Ok,
            format!("decrypts all {all} credentials of sources and hooks"),
        ),
        (true, _) => check(
            CheckStatus::Fail,
            format!(
                "cannot decrypt {unopened} of {all} credentials of sources and hooks; put the right file back, or set \
                 them again"
            ),
        ),
        (false, _) => check(
            CheckStatus::Fail,
            format!(
                "is missing, and {all} credentials of sources and hooks need it; put the file back"
            ),
        ),
    }
}

async fn check_name_resolution() -> DoctorCheck {
    let check = |verdict, detail: String| DoctorCheck::new("name resolution", verdict, detail);
    let resolver = match HickoryResolver::from_system(DNS_TIMEOUT) {
        Ok(resolver) => resolver,
        Err(error) => {
            return check(
                CheckStatus::Fail,
                format!("the system's settings cannot be read: {error}; see /etc/resolv.conf"),
            );
        }
    };
    match resolver.resolve(DNS_NAME).await {
        Ok(addresses) => check(
            CheckStatus::Ok,
            format!("{DNS_NAME} has {} addresses", addresses.len()),
        ),
        Err(error) => check(
            CheckStatus::Warn,
            format!(
                "{DNS_NAME} cannot be resolved: {error}; agents on the internet cannot be reached"
            ),
        ),
    }
}

async fn check_registry(client: &Client) -> DoctorCheck {
    let check = |verdict, detail: String| DoctorCheck::new("registry", verdict, detail);
    match client.readiness().await {
        Err(error) => check(CheckStatus::Warn, error.to_string()),
        Ok((200, Some(_))) => check(CheckStatus::Ok, format!("{} is ready", client.base_url())),
        Ok((status, body)) => {
            let broken = failing_readiness_checks(body.as_ref());
            let reason = if broken.is_empty() {
                format!("it responds with HTTP {status}")
            } else {
                broken
            };
            check(
                CheckStatus::Fail,
                format!("{} is not ready: {reason}", client.base_url()),
            )
        }
    }
}

/// Failing checks of `/readyz`.
fn failing_readiness_checks(body: Option<&Value>) -> String {
    let checks = body
        .and_then(|body| body.get("checks"))
        .and_then(Value::as_array);
    let text = |check: &Value, name: &str| {
        check
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    checks
        .into_iter()
        .flatten()
        .filter(|check| check.get("ok") == Some(&Value::Bool(false)))
        .map(|check| format!("{} {}", text(check, "name"), text(check, "detail")))
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_folder_is_judged_without_making_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check_data_folder(folder.path()).verdict, CheckStatus::Ok);
        let missing = folder.path().join("missing");
        assert_eq!(check_data_folder(&missing).verdict, CheckStatus::Warn);
        assert!(!missing.exists());
    }

    #[test]
    fn only_the_database_in_the_data_folder_may_be_missing() {
        let mut config = Config::default();
        config.store.data_dir = "/no/folder".into();
        assert!(is_default_database_missing(&config));
        config.store.database_file = Some("/no/folder/url".into());
        assert!(!is_default_database_missing(&config));
    }

    #[test]
    fn only_what_does_not_hold_is_named() {
        let body = serde_json::json!({"checks": [
            {"name": "database", "ok": true, "detail": "answers"},
            {"name": "index", "ok": false, "detail": "is 20000 ms behind"},
        ]});
        assert_eq!(
            failing_readiness_checks(Some(&body)),
            "index is 20000 ms behind"
        );
        assert_eq!(failing_readiness_checks(None), "");
    }
}
