//! `policy diff`, `preview`, `test`, `dry-run` and `template`: policies are read and tried before they decide.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use a2a_registry_api::{
    AccessChange, DryRun, NewPolicies, NewPolicy, PolicyCase, PolicyCaseResult, PolicyCases,
    PolicyPreview,
};
use a2a_registry_policy::TEMPLATES;
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
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

pub async fn diff(arguments: &DiffArgs, client: &Client, console: &Console) -> CommandResult {
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
    let differing: Vec<_> = told
        .iter()
        .map(|(id, old, new)| json!({"id": id, "before": old, "after": new}))
        .collect();
    console.show(&json!({ "policies": differing }), || {
        for (id, old, new) in &told {
            console.line(&format!("# {id}"))?;
            for line in old.lines().filter(|_| old != new) {
                console.line(&format!("- {}", terminal::line(line)))?;
            }
            for line in new.lines() {
                console.line(&format!("+ {}", terminal::line(line)))?;
            }
        }
        Ok(())
    })?;
    Ok(CommandOutcome::done_if(told.is_empty()))
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

pub async fn preview(files: &[PathBuf], client: &Client, console: &Console) -> CommandResult {
    let new = NewPolicies {
        policies: read_all(files)?,
        reason: "a preview".to_owned(),
        ..NewPolicies::default()
    };
    let reply = client.preview_policies(&new).await?;
    console.show(&reply, || show_preview(&reply.value, console))
}

fn show_preview(told: &PolicyPreview, console: &Console) -> Result<(), Failure> {
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
    Ok(())
}

fn sample(change: &AccessChange, console: &Console) -> Result<(), Failure> {
    let gained = change.gained_sample.iter().map(|agent| ('+', agent));
    let lost = change.lost_sample.iter().map(|agent| ('-', agent));
    for (sign, agent) in gained.chain(lost) {
        console.line(&format!(
            "{sign} {} {}: {} {} ({})",
            change.action,
            terminal::line(&change.caller),
            agent.id,
            terminal::line(&agent.name),
            permitting(&agent.policies)
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

pub async fn test(arguments: &TestArgs, client: &Client, console: &Console) -> CommandResult {
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
    console.show(&reply, || {
        let mut results = asked.cases.iter().zip(&reply.value.results);
        results.try_for_each(|(case, result)| console.line(&result_line(case, result)))
    })?;
    Ok(CommandOutcome::done_if(reply.value.passed))
}

/// How a case was decided, in one line.
fn result_line(case: &PolicyCase, result: &PolicyCaseResult) -> String {
    let who = case.account.as_deref().unwrap_or("anonymous");
    let groups = case.groups.iter().map(|name| format!(" in {name}"));
    let decided = match result.allowed {
        true => "allowed",
        false => "denied",
    };
    let passed = match result.passed {
        true => "ok   ",
        false => "WRONG",
    };
    format!(
        "{passed} {who}{}, {} {}: {decided} ({})",
        groups.collect::<String>(),
        case.action,
        case.resource,
        permitting(&result.policies)
    )
}

/// The policies that permit something, by their identifiers.
fn permitting(policies: &[String]) -> String {
    match policies {
        [] => "nothing permits it".to_owned(),
        policies => policies.join(", "),
    }
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
pub async fn dry_run(policy: &str, client: &Client, console: &Console) -> CommandResult {
    let reply = client.policy_dry_run(policy).await?;
    console.show(&reply, || show_dry_run(policy, &reply.value, console))?;
    Ok(CommandOutcome::of_list(&reply.value.days))
}

fn show_dry_run(policy: &str, told: &DryRun, console: &Console) -> Result<(), Failure> {
    if !told.running {
        terminal::note(&format!(
            "{policy} is not on a dry run; `@mode(\"dry_run\")` before it tries it"
        ));
    }
    if told.days.is_empty() {
        terminal::note("it would have changed no answer so far");
        return Ok(());
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
    Ok(())
}

/// Prints a template, or the names of all.
pub fn template(name: Option<&str>, console: &Console) -> CommandResult {
    let Some(name) = name else {
        let names: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
        return console.show(&json!({ "templates": names }), || {
            for (name, text) in TEMPLATES {
                let first = text.lines().next().unwrap_or_default();
                console.line(&format!("{name:<22} {}", first.trim_start_matches("// ")))?;
            }
            Ok(())
        });
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
