//! `backup` and `restore`: copy a registry to a folder, and recreate a lost registry from that folder.

use std::path::PathBuf;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_registry_core::config::DatabaseUrl;
use a2a_registry_server::backup::{
    BackupManifest, BackupRequest, LostAct, LostActs, PreparedRestore, create_backup,
    find_lost_acts,
};
use clap::Args;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::command_error::CommandResult;
use super::confirm::confirm_consequence;
use super::console::Console;
use super::offline_args::OfflineArgs;
use super::terminal::eprint_note;

/// Maximum number of tokens, of holds and of acts that are printed; `--json` shows more.
const MAX_PRINTED_LINES: usize = 50;

/// Arguments of `backup`.
#[derive(Args, Debug, Clone)]
pub struct BackupArgs {
    /// Folder for the new backup; it is created if it does not exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Also copy private keys and secrets: the configuration file, the files with secrets that it names, and the key
    /// of the registry's own card
    #[arg(long)]
    with_secrets: bool,
    #[command(flatten)]
    local: OfflineArgs,
}

/// Arguments of `restore`.
#[derive(Args, Debug, Clone)]
pub struct RestoreArgs {
    /// Folder of the backup
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// List what was done since the backup, if the lost database can still be read: its SQLite file or its URL
    #[arg(long, value_name = "FILE|URL")]
    compare_with: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    local: OfflineArgs,
}

pub async fn run_backup(arguments: &BackupArgs, console: &Console) -> CommandResult {
    let config = arguments.local.load_config()?;
    let request = BackupRequest {
        config: &config,
        folder: &arguments.folder,
        with_secrets: arguments.with_secrets,
        config_file: arguments.local.config.as_deref(),
    };
    let spinner = new_spinner();
    let progress = |step: &str, bytes: u64| show_progress(&spinner, step, bytes);
    let created = create_backup(request, &SystemClock, &progress).await;
    spinner.finish_and_clear();
    let manifest = created?;
    let folder = arguments.folder.display();
    let document = json!({ "folder": arguments.folder, "manifest": manifest });
    console.print_result(&document, || {
        let bytes = manifest.files.values().map(|file| file.bytes).sum::<u64>();
        console.print_line(&format!(
            "the backup {folder} is complete: {} files, {}, up to event {}",
            manifest.files.len(),
            HumanBytes(bytes),
            manifest.last_event
        ))?;
        match manifest.with_secrets {
            true => console.print_line("it contains private keys and secrets"),
            false => console.print_line(
                "it contains no private keys or secrets; keep a copy of them elsewhere, or use --with-secrets",
            ),
        }
    })
}

pub async fn run_restore(arguments: &RestoreArgs, console: &Console) -> CommandResult {
    let config = arguments.local.load_config()?;
    let database = DatabaseUrl::from(config.database_url());
    let spinner = new_spinner();
    let progress = |step: &str, bytes: u64| show_progress(&spinner, step, bytes);
    let prepared = PreparedRestore::new(config.clone(), &arguments.folder, &progress).await;
    spinner.finish_and_clear();
    let prepared = prepared?;
    let manifest = prepared.manifest().clone();
    let lost = match &arguments.compare_with {
        Some(lost) => Some(find_lost_acts(&config, lost, &manifest).await?),
        None => None,
    };
    print_consequences(&manifest, lost.as_ref());
    let action = format!(
        "restoring the backup {} of {} into {database}",
        arguments.folder.display(),
        manifest.created_at.to_readable()
    );
    let consequence = "all sessions end, and what was ended since the backup is in force again";
    confirm_consequence(&action, consequence, arguments.yes)?;
    let spinner = new_spinner();
    let progress = |step: &str, bytes: u64| show_progress(&spinner, step, bytes);
    let restored = prepared.run(&SystemClock, &progress).await;
    spinner.finish_and_clear();
    let restore_event = restored?.restore_event;
    let document = json!({
        "folder": arguments.folder,
        "last_event": manifest.last_event,
        "restore_event": restore_event,
        "rights": manifest.rights,
        "lost": lost,
        "secret_files": manifest.secret_files,
    });
    console.print_result(&document, || {
        console.print_line(&format!(
            "the registry is restored up to event {}; the next start rebuilds the index",
            manifest.last_event
        ))?;
        for (name, original) in &manifest.secret_files {
            console.print_line(&format!(
                "not restored: {}; if it is lost, copy {} there yourself",
                original.display(),
                arguments.folder.join(name).display()
            ))?;
        }
        Ok(())
    })
}

/// Prints what is lost and what comes into force again, on standard error.
fn print_consequences(manifest: &BackupManifest, lost: Option<&LostActs>) {
    eprint_note(&format!(
        "the backup was made on {} by version {}, up to event {}",
        manifest.created_at.to_readable(),
        manifest.version,
        manifest.last_event
    ));
    match lost {
        Some(lost) => {
            eprint_note(&format!(
                "lost: {} acts after event {}, up to event {}; {} of them ended something that is in force again",
                lost.act_count, manifest.last_event, lost.last_event, lost.revival_count
            ));
            print_entries(lost.act_count, lost.acts.iter().map(lost_act_line));
        }
        None => eprint_note(
            "lost: everything that was done since; --compare-with lists it if the lost database can be read",
        ),
    }
    let rights = &manifest.rights;
    eprint_note(&format!(
        "in force again, even if ended since: {} tokens, {} holds, the approvals of {} agents",
        rights.token_count, rights.hold_count, rights.approved_agents
    ));
    let tokens = rights.tokens.iter().map(|token| {
        let expiry = token.expires_at.map_or_else(String::new, |at| {
            format!(", expires on {}", at.to_readable())
        });
        format!(
            "token {} ({}…) of {}{expiry}",
            token.name, token.prefix, token.account
        )
    });
    print_entries(rights.token_count, tokens);
    let holds = rights.holds.iter().map(|hold| {
        format!(
            "hold {} of agent {} by {}: {}",
            hold.hold, hold.agent, hold.actor, hold.reason
        )
    });
    print_entries(rights.hold_count, holds);
}

fn lost_act_line(act: &LostAct) -> String {
    let revived = act
        .revives
        .map_or_else(String::new, |revived| format!(": {revived}"));
    format!(
        "{} event {}, {} of {} by {}{revived}",
        act.at.to_readable(),
        act.seq,
        act.kind,
        act.subject,
        act.actor
    )
}

/// Prints the first entries, and how many more there are.
fn print_entries(count: u64, entries: impl Iterator<Item = String>) {
    let mut printed = 0;
    for entry in entries.take(MAX_PRINTED_LINES) {
        eprint_note(&format!("  {entry}"));
        printed += 1;
    }
    if count > printed {
        eprint_note(&format!("  and {} more", count - printed));
    }
}

/// Progress indicator, visible on a terminal only.
fn new_spinner() -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn show_progress(spinner: &ProgressBar, step: &str, bytes: u64) {
    spinner.set_message(format!("{step}: {}", HumanBytes(bytes)));
}
