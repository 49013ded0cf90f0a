//! `policy diff`, `preview`, `test`, `dry-run` and `template`: policies are read and tried before they decide.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use a2a_registry_api::{
    AccessChange, NewPolicies, NewPolicy, PolicyCase, PolicyCases, PreviewedAgent,
};
use a2a_registry_policy::TEMPLATES;
use clap::Args;
use serde::Deserialize;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::policy_files::read_all;
use super::{table, terminal};

/// What `policy diff` takes.
#[derive(Args, Debug, Clone)]
pub struct DiffArgs {
    /// Number of the set to begin with, the newest by default
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    /// Number of the set to compare with
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "files",
        required_unless_present = "files"
    )]
    to: Option<u64>,
    /// Files named *.cedar, or folders of them, to compare with
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// What `policy test` takes.
#[derive(Args, Debug, Clone)]
pub struct TestArgs {
    /// Files of cases (TOML, [[cases]])
    #[arg(required = true, value_name = "CASES")]
    cases: Vec<PathBuf>,
    /// Decide by these policies: files named *.cedar, or folders of them; by the newest set without
    #[arg(long, value_name = "FILE")]
    policies: Vec<PathBuf>,
}

/// The texts of policies by their identifiers.
type Texts = BTreeMap<String, String>;

/// Shows which lines differ.
///
/// # Errors
/// Where the registry is away or refuses, or a file cannot be read.
pub async fn diff(
    arguments: &DiffArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let before = set(arguments.from, client).await?;
    let after = match arguments.files.is_empty() {
        true => set(arguments.to, client).await?,
        false => texts(read_all(&arguments.files)?),
    };
    let mut ids: Vec<&String> = before.keys().chain(after.keys()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut told = Vec::new();
    for id in ids {
        let (old, new) = (before.get(id), after.get(id));
        if old == new {
            continue;
        }
        let lines = |text: Option<&String>| text.map_or_else(String::new, Clone::clone);
        told.push((id, lines(old), lines(new)));
    }
    if console.json {
        let differing: Vec<_> = told
            .iter()
            .map(|(id, old, new)| serde_json::json!({"id": id, "before": old, "after": new}))
            .collect();
        console.json(&serde_json::json!({ "policies": differing }))?;
    } else {
        for (id, old, new) in &told {
            console.line(&format!("# {id}"))?;
            for line in old.lines().filter(|_| old != new) {
                console.line(&format!("- {}", terminal::line(line)))?;
            }
            for line in new.lines() {
                console.line(&format!("+ {}", terminal::line(line)))?;
            }
        }
    }
    Ok(match told.is_empty() {
        true => CommandOutcome::Done,
        false => CommandOutcome::No,
    })
}

async fn set(number: Option<u64>, client: &Client) -> Result<Texts, Failure> {
    let policies = client.policies(number).await?.value.policies;
    let written = policies.into_iter().filter(|policy| !policy.shipped);
    Ok(written.map(|policy| (policy.id, policy.text)).collect())
}

fn texts(policies: Vec<NewPolicy>) -> Texts {
    let policies = policies.into_iter();
    policies.map(|policy| (policy.id, policy.text)).collect()
}

/// Shows what policies would change.
///
/// # Errors
/// Where the registry is away or refuses, or a file cannot be read.
pub async fn preview(
    files: &[PathBuf],
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let new = NewPolicies {
        policies: read_all(files)?,
        reason: "a preview".to_owned(),
        ..NewPolicies::default()
    };
    let reply = client.preview_policies(&new).await?;
    let told = &reply.value;
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(CommandOutcome::Done);
    }
    for policy in &told.policies {
        console.line(&format!("{} {}", policy.what, policy.id))?;
    }
    console.line(&format!(
        "{} agents were looked at; set {} is the newest",
        told.agents, told.number
    ))?;
    let rows: Vec<Vec<String>> = told
        .changes
        .iter()
        .map(|change| {
            vec![
                change.action.clone(),
                terminal::line(&change.caller),
                format!("+{}", change.gained),
                format!("-{}", change.lost),
            ]
        })
        .collect();
    if !rows.is_empty() {
        table::print(console, &["ACTION", "CALLER", "GAINS", "LOSES"], &rows)?;
    }
    for change in &told.changes {
        sample(change, console)?;
    }
    for warning in &told.warnings {
        terminal::note(&format!("warning: {warning}"));
    }
    Ok(CommandOutcome::Done)
}

fn sample(change: &AccessChange, console: &Console) -> Result<(), Failure> {
    let gained = change.gained_sample.iter().map(|agent| ('+', agent));
    let lost = change.lost_sample.iter().map(|agent| ('-', agent));
    let by = |agent: &PreviewedAgent| match agent.policies.is_empty() {
        true => "nothing permits it".to_owned(),
        false => agent.policies.join(", "),
    };
    for (sign, agent) in gained.chain(lost) {
        console.line(&format!(
            "{sign} {} {}: {} {} ({})",
            change.action,
            terminal::line(&change.caller),
            agent.id,
            terminal::line(&agent.name),
            by(agent)
        ))?;
    }
    Ok(())
}

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    cases: Vec<PolicyCase>,
}

/// Tests how policies decide.
///
/// # Errors
/// Where the registry is away or refuses, or a file cannot be read.
pub async fn test(
    arguments: &TestArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let mut cases = Vec::new();
    for path in &arguments.cases {
        cases.extend(read_cases(path)?);
    }
    let policies = match arguments.policies.is_empty() {
        true => None,
        false => Some(read_all(&arguments.policies)?),
    };
    let asked = PolicyCases { policies, cases };
    let reply = client.test_policies(&asked).await?;
    let outcome = match reply.value.passed {
        true => CommandOutcome::Done,
        false => CommandOutcome::No,
    };
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(outcome);
    }
    for (case, result) in asked.cases.iter().zip(&reply.value.results) {
        let who = case.account.as_deref().unwrap_or("anonymous");
        let groups: Vec<String> = case
            .groups
            .iter()
            .map(|name| format!(" in {name}"))
            .collect();
        let decided = match result.allowed {
            true => "allowed",
            false => "denied",
        };
        let by = match result.policies.is_empty() {
            true => "nothing permits it".to_owned(),
            false => result.policies.join(", "),
        };
        let passed = match result.passed {
            true => "ok   ",
            false => "WRONG",
        };
        console.line(&format!(
            "{passed} {who}{}, {} {}: {decided} ({by})",
            groups.concat(),
            case.action,
            case.resource
        ))?;
    }
    Ok(outcome)
}

fn read_cases(path: &Path) -> Result<Vec<PolicyCase>, Failure> {
    let failed = |reason: String| Failure::new(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let read: CaseFile = toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map(|span| text[..span.start].lines().count().max(1));
        let place = line
            .map(|line| format!("line {line}: "))
            .unwrap_or_default();
        failed(format!("{place}{}", error.message()))
    })?;
    Ok(read.cases)
}

/// Shows what a policy on a dry run would have changed; the outcome is "no" where it is nothing.
///
/// # Errors
/// Where the registry is away or refuses.
pub async fn dry_run(
    policy: &str,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let reply = client.policy_dry_run(policy).await?;
    let told = &reply.value;
    let outcome = CommandOutcome::of_list(&told.days);
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(outcome);
    }
    if !told.running {
        terminal::note(&format!(
            "{policy} is not on a dry run; `@mode(\"dry_run\")` before it tries it"
        ));
    }
    if told.days.is_empty() {
        terminal::note("it would have changed no answer so far");
        return Ok(outcome);
    }
    let days: Vec<Vec<String>> = told
        .days
        .iter()
        .map(|day| {
            vec![
                day.day.clone(),
                day.denied.to_string(),
                day.allowed.to_string(),
                day.resources.to_string(),
                day.callers.to_string(),
            ]
        })
        .collect();
    let header = ["DAY", "WOULD DENY", "WOULD ALLOW", "AGENTS", "CALLERS"];
    table::print(console, &header, &days)?;
    for (title, counts) in [("agent", &told.resources), ("caller", &told.callers)] {
        for count in counts {
            console.line(&format!(
                "{title:<8} {} {}",
                count.answers,
                terminal::line(&count.name)
            ))?;
        }
    }
    Ok(outcome)
}

/// Prints a template, or the names of all.
///
/// # Errors
/// For a name that is none.
pub fn template(name: Option<&str>, console: &Console) -> Result<CommandOutcome, Failure> {
    let Some(name) = name else {
        if console.json {
            let names: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
            console.json(&serde_json::json!({ "templates": names }))?;
            return Ok(CommandOutcome::Done);
        }
        for (name, text) in TEMPLATES {
            let first = text.lines().next().unwrap_or_default();
            console.line(&format!("{name:<22} {}", first.trim_start_matches("// ")))?;
        }
        return Ok(CommandOutcome::Done);
    };
    let found = TEMPLATES.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| {
        Failure::new(format!(
            "there is no template {name}; `policy template` lists them"
        ))
    })?;
    console.lines(text.trim_end())?;
    Ok(CommandOutcome::Done)
}
