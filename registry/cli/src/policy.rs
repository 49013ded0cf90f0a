//! `policy`: the rules by which agents are found and called, kept as files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use a2a_registry_api::limits::MAX_POLICY_TEXT;
use a2a_registry_api::{DecisionRequest, NewPolicies, NewPolicy, Policies};
use clap::{Args, Subcommand};
use serde_json::json;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::list::{Listing, PageArgs, ReceivedPage};
use super::terminal;

/// How often the registry is asked whether a new set decides.
const ASKED_EVERY: Duration = Duration::from_millis(200);
/// What policies are in.
const EXTENSION: &str = "cedar";

/// What `policy` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum PolicyCommand {
    /// Show the policies of a set, the newest by default
    Show {
        /// Number of the set
        #[arg(long, value_name = "N")]
        number: Option<u64>,
    },
    /// List the policy sets that were made, newest first
    History(PageArgs),
    /// Put the policies of files in force: one policy in each, whose name is its identifier
    Apply(ApplyArgs),
    /// Say whether the caller may find or call an agent
    Decide {
        /// Id or URN of the agent
        agent: String,
        /// What the caller wants to do
        #[arg(long, default_value = "invoke", value_parser = ["discover", "invoke"])]
        action: String,
    },
}

/// What `policy apply` takes.
#[derive(Args, Debug, Clone)]
pub struct ApplyArgs {
    /// Files named *.cedar, or folders of them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Why, for the log
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    reason: Option<String>,
    /// Only say what would change; the exit code is 1 if anything would
    #[arg(long)]
    dry_run: bool,
    /// Return only when the new set decides
    #[arg(long)]
    wait: bool,
}

/// Does it.
///
/// # Errors
/// Where the registry is away or refuses, or a file cannot be read.
pub async fn run(
    command: &PolicyCommand,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    match command {
        PolicyCommand::Show { number } => show(*number, client, console).await,
        PolicyCommand::History(page) => history(page, client, console).await,
        PolicyCommand::Apply(arguments) => apply(arguments, client, console).await,
        PolicyCommand::Decide { agent, action } => decide(agent, action, client, console).await,
    }
}

async fn show(
    number: Option<u64>,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let reply = client.policies(number).await?;
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(CommandOutcome::Done);
    }
    let set = &reply.value;
    console.line(&format!(
        "set {}{}",
        set.number,
        match set.number == set.in_force {
            true => ", in force".to_owned(),
            false => format!("; set {} is in force", set.in_force),
        }
    ))?;
    if let (Some(author), Some(reason)) = (&set.author, &set.reason) {
        console.line(&format!(
            "by {}: {}",
            terminal::line(author),
            terminal::line(reason)
        ))?;
    }
    for policy in &set.policies {
        let mode = match policy.mode.as_str() {
            "enforce" => String::new(),
            other => format!(" ({other})"),
        };
        console.line("")?;
        console.line(&format!("# {}{mode}", policy.id))?;
        console.lines(policy.text.trim_end())?;
    }
    Ok(CommandOutcome::Done)
}

async fn history(
    page: &PageArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let reply = client
        .policy_history(page.limit, page.page_token.as_deref())
        .await?;
    let listing = Listing {
        command: "policy history",
        header: &["SET", "MADE", "BY", "POLICIES", "REASON"],
        empty: "no policy set was made; the shipped one is in force",
    };
    let received = ReceivedPage {
        raw: &reply.raw,
        entries: &reply.value.sets,
        next: reply.value.next_page_token.as_deref(),
    };
    listing.show(console, page, &received, |set| {
        vec![
            set.number.to_string(),
            set.created_at.to_rfc3339(),
            set.author.clone(),
            set.policies.to_string(),
            set.reason.clone(),
        ]
    })
}

async fn apply(
    arguments: &ApplyArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let policies = read_all(&arguments.files)?;
    let before = client.policies(None).await?.value;
    let changes = changes(&before, &policies);
    if changes.is_empty() || arguments.dry_run {
        if console.json {
            console.json(&json!({"number": before.number, "changes": changes}))?;
        } else {
            for change in &changes {
                console.line(&format!("{} {}", change.what, change.id))?;
            }
            if changes.is_empty() {
                console.line(&format!("set {} has these policies already", before.number))?;
            }
        }
        return Ok(match changes.is_empty() {
            true => CommandOutcome::Done,
            false => CommandOutcome::No,
        });
    }
    let new = NewPolicies {
        policies,
        reason: arguments.reason.clone().unwrap_or_default(),
    };
    let accepted = client.put_policies(&new, before.number).await?.value;
    let in_force = match arguments.wait {
        true => in_force(client, accepted.number).await?,
        false => accepted.in_force,
    };
    if console.json {
        console
            .json(&json!({"number": accepted.number, "in_force": in_force, "changes": changes}))?;
        return Ok(CommandOutcome::Done);
    }
    for change in &changes {
        console.line(&format!("{} {}", change.what, change.id))?;
    }
    console.line(&match in_force == accepted.number {
        true => format!("set {} is in force", accepted.number),
        false => format!(
            "set {} is accepted; set {in_force} is in force until all agents are evaluated",
            accepted.number
        ),
    })?;
    Ok(CommandOutcome::Done)
}

/// Waits until this set, or a later one, is in force.
async fn in_force(client: &Client, number: u64) -> Result<u64, Failure> {
    loop {
        let shown = client.policies(None).await?.value;
        if shown.in_force >= number {
            return Ok(shown.in_force);
        }
        tokio::time::sleep(ASKED_EVERY).await;
    }
}

/// A policy that a set would gain, lose or have otherwise.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
struct Change {
    what: &'static str,
    id: String,
}

/// What differs, in the order of the identifiers. Another order of the same policies is no change.
fn changes(before: &Policies, after: &[NewPolicy]) -> Vec<Change> {
    let old: BTreeMap<&str, &str> = before
        .policies
        .iter()
        .map(|policy| (policy.id.as_str(), policy.text.as_str()))
        .collect();
    let new: BTreeMap<&str, &str> = after
        .iter()
        .map(|policy| (policy.id.as_str(), policy.text.as_str()))
        .collect();
    let mut ids: Vec<&str> = old.keys().chain(new.keys()).copied().collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter()
        .filter_map(|id| {
            let what = match (old.get(id), new.get(id)) {
                (None, _) => "add",
                (_, None) => "remove",
                (Some(old), Some(new)) if old != new => "change",
                _ => return None,
            };
            Some(Change {
                what,
                id: id.to_owned(),
            })
        })
        .collect()
}

/// The policies of these files and folders, in the order of their identifiers.
fn read_all(files: &[PathBuf]) -> Result<Vec<NewPolicy>, Failure> {
    let mut paths = Vec::new();
    for path in files {
        if path.is_dir() {
            paths.extend(in_folder(path)?);
        } else {
            paths.push(path.clone());
        }
    }
    let mut policies = BTreeMap::new();
    for path in paths {
        let policy = read(&path)?;
        if policies.contains_key(&policy.id) {
            return Err(Failure::new(format!(
                "two files are named {}.{EXTENSION}: the name is the policy's identifier",
                policy.id
            )));
        }
        policies.insert(policy.id.clone(), policy);
    }
    if policies.is_empty() {
        return Err(Failure::new(format!(
            "there is no *.{EXTENSION} file in the given folders, and a set without policies hides every agent"
        )));
    }
    Ok(policies.into_values().collect())
}

fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            found.push(path);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<NewPolicy, Failure> {
    let failed = |reason: String| Failure::new(format!("{}: {reason}", path.display()));
    let length = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if length > MAX_POLICY_TEXT as u64 {
        return Err(failed(format!(
            "a policy has at most {MAX_POLICY_TEXT} bytes"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let id = stem.ok_or_else(|| failed("the name of the file is no identifier".to_owned()))?;
    Ok(NewPolicy {
        id: id.to_owned(),
        text,
    })
}

async fn decide(
    agent: &str,
    action: &str,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let request = DecisionRequest {
        action: action.to_owned(),
        agent: agent.to_owned(),
    };
    let reply = client.policy_decision(&request).await?;
    let decision = &reply.value;
    let outcome = match decision.allowed {
        true => CommandOutcome::Done,
        false => CommandOutcome::No,
    };
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(outcome);
    }
    console.line(&match &decision.reason {
        None => format!("allowed by set {}", decision.number),
        Some(reason) => format!(
            "denied by set {}: {}",
            decision.number,
            terminal::line(reason)
        ),
    })?;
    for policy in &decision.policies {
        console.line(&format!("policy   {policy}"))?;
    }
    Ok(outcome)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_files_whose_names_are_their_identifiers() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        assert!(read_all(&[folder.path().to_owned()]).is_err());
        write("b.cedar", "two");
        write("a.cedar", "one");
        write("notes.txt", "none");
        let read = read_all(&[folder.path().to_owned()]).unwrap();
        let names: Vec<_> = read
            .iter()
            .map(|one| (one.id.as_str(), one.text.as_str()))
            .collect();
        assert_eq!(names, [("a", "one"), ("b", "two")]);
        let twice = [folder.path().to_owned(), folder.path().join("a.cedar")];
        assert!(read_all(&twice).is_err());
        assert!(read_all(&[folder.path().join("missing.cedar")]).is_err());
        write("large.cedar", &" ".repeat(MAX_POLICY_TEXT + 1));
        assert!(read_all(&[folder.path().join("large.cedar")]).is_err());
    }
}
