//! `policy diff`, `preview`, `test`, `dry-run` and `template`: reading and testing policies before they are in force.

use std::path::{Path, PathBuf};

use a2a_registry_api::{
    AccessChange, DryRun, NewPolicies, PolicyCase, PolicyCaseResult, PolicyCases, PolicyPreview,
};
use a2a_registry_policy::TEMPLATES;
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::policy_files::{
    PolicyTexts, custom_policies, differing_policies, policy_texts, read_policies,
};
use super::policy_preview::make_policy_preview;
use super::{table, terminal};

/// Arguments of `policy diff`.
#[derive(Args, Debug, Clone)]
pub struct PolicyDiffArgs {
    /// Number of the first set, the newest by default
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

/// Arguments of `policy test`.
#[derive(Args, Debug, Clone)]
pub struct PolicyTestArgs {
    /// Files with cases (TOML, [[cases]])
    #[arg(required = true, value_name = "CASES")]
    cases: Vec<PathBuf>,
    /// Policies to test: files named *.cedar, or folders of them; the newest set if absent
    #[arg(long, value_name = "FILE")]
    policies: Vec<PathBuf>,
}

pub async fn diff_policies(
    arguments: &PolicyDiffArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let before = fetch_policy_texts(arguments.from, client).await?;
    let after = match arguments.files.is_empty() {
        true => fetch_policy_texts(arguments.to, client).await?,
        false => policy_texts(read_policies(&arguments.files)?),
    };
    let differences = differing_policies(&before, &after);
    let differing: Vec<_> = differences
        .iter()
        .map(|(id, old, new)| {
            let (old, new) = (old.as_deref(), new.as_deref());
            json!({"id": id, "before": old.unwrap_or_default(), "after": new.unwrap_or_default()})
        })
        .collect();
    console.print_result(&json!({ "policies": differing }), || {
        for (id, old, new) in &differences {
            console.print_line(&format!("# {id}"))?;
            for line in old.as_deref().unwrap_or_default().lines() {
                console.print_line(&format!("- {}", terminal::escape_line(line)))?;
            }
            for line in new.as_deref().unwrap_or_default().lines() {
                console.print_line(&format!("+ {}", terminal::escape_line(line)))?;
            }
        }
        Ok(())
    })?;
    Ok(CommandOutcome::done_if(differences.is_empty()))
}

async fn fetch_policy_texts(
    number: Option<u64>,
    client: &Client,
) -> Result<PolicyTexts, CommandError> {
    let set = client.fetch_policy_set(number).await?.value;
    Ok(policy_texts(custom_policies(set)))
}

pub async fn preview_policies(
    files: &[PathBuf],
    client: &Client,
    console: &Console,
) -> CommandResult {
    let new = NewPolicies {
        policies: read_policies(files)?,
        reason: "a preview".to_owned(),
        ..NewPolicies::default()
    };
    let preview = make_policy_preview(&new, client).await?;
    console.print_result(&preview, || print_policy_preview(&preview, console))
}

fn print_policy_preview(
    policy_preview: &PolicyPreview,
    console: &Console,
) -> Result<(), CommandError> {
    for policy in &policy_preview.policies {
        console.print_line(&format!("{} {}", policy.what, policy.id))?;
    }
    console.print_line(&format!(
        "{} agents were evaluated; set {} is the newest",
        policy_preview.agents, policy_preview.number
    ))?;
    let rows: Vec<Vec<String>> = policy_preview
        .changes
        .iter()
        .map(|change| {
            vec![
                change.action.clone(),
                terminal::escape_line(&change.caller),
                format!("+{}", change.gained),
                format!("-{}", change.lost),
            ]
        })
        .collect();
    if !rows.is_empty() {
        table::print_table(console, &["ACTION", "CALLER", "GAINS", "LOSES"], &rows)?;
    }
    for change in &policy_preview.changes {
        print_access_change_sample(change, console)?;
    }
    for warning in &policy_preview.warnings {
        terminal::eprint_note(&format!("warning: {warning}"));
    }
    Ok(())
}

fn print_access_change_sample(
    change: &AccessChange,
    console: &Console,
) -> Result<(), CommandError> {
    let gained = change.gained_sample.iter().map(|agent| ('+', agent));
    let lost = change.lost_sample.iter().map(|agent| ('-', agent));
    for (sign, agent) in gained.chain(lost) {
        console.print_line(&format!(
            "{sign} {} {}: {} {} ({})",
            change.action,
            terminal::escape_line(&change.caller),
            agent.id,
            terminal::escape_line(&agent.name),
            format_permitting_policies(&agent.policies)
        ))?;
    }
    Ok(())
}

/// File with cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyCaseFile {
    cases: Vec<PolicyCase>,
}

pub async fn test_policies(
    arguments: &PolicyTestArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let mut cases = Vec::new();
    for path in &arguments.cases {
        cases.extend(read_policy_cases(path)?);
    }
    let policies = match arguments.policies.is_empty() {
        true => None,
        false => Some(read_policies(&arguments.policies)?),
    };
    let request = PolicyCases { policies, cases };
    let reply = client.test_policies(&request).await?;
    console.print_result(&reply, || {
        let mut results = request.cases.iter().zip(&reply.value.results);
        results.try_for_each(|(case, result)| {
            console.print_line(&policy_case_result_line(case, result))
        })
    })?;
    Ok(CommandOutcome::done_if(reply.value.passed))
}

/// Decision on a case, in one line.
fn policy_case_result_line(case: &PolicyCase, result: &PolicyCaseResult) -> String {
    let caller = case.account.as_deref().unwrap_or("anonymous");
    let groups = case.groups.iter().map(|name| format!(" in {name}"));
    let decision = match result.allowed {
        true => "allowed",
        false => "denied",
    };
    let passed = match result.passed {
        true => "ok   ",
        false => "WRONG",
    };
    format!(
        "{passed} {caller}{}, {} {}: {decision} ({})",
        groups.collect::<String>(),
        case.action,
        case.resource,
        format_permitting_policies(&result.policies)
    )
}

/// Permitting policies, by their identifiers.
fn format_permitting_policies(policies: &[String]) -> String {
    match policies {
        [] => "no policy permits it".to_owned(),
        policies => policies.join(", "),
    }
}

fn read_policy_cases(path: &Path) -> Result<Vec<PolicyCase>, CommandError> {
    let file_error = |reason: String| CommandError::new(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| file_error(error.to_string()))?;
    let parsed: PolicyCaseFile = toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map(|span| text[..span.start].lines().count().max(1));
        let location = line
            .map(|line| format!("line {line}: "))
            .unwrap_or_default();
        file_error(format!("{location}{}", error.message()))
    })?;
    Ok(parsed.cases)
}

/// Shows what a policy on a dry run would have changed; the outcome is negative if it is nothing.
pub async fn report_policy_dry_run(
    policy: &str,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = client.policy_dry_run(policy).await?;
    console.print_result(&reply, || {
        print_policy_dry_run(policy, &reply.value, console)
    })?;
    Ok(CommandOutcome::done_unless_empty(&reply.value.days))
}

fn print_policy_dry_run(
    policy: &str,
    report: &DryRun,
    console: &Console,
) -> Result<(), CommandError> {
    if !report.running {
        terminal::eprint_note(&format!(
            "{policy} is not on a dry run; put `@mode(\"dry_run\")` before it to try it"
        ));
    }
    if report.days.is_empty() {
        terminal::eprint_note(&format!(
            "{policy} would not have changed any decision so far"
        ));
        return Ok(());
    }
    let days: Vec<Vec<String>> = report
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
    table::print_table(console, &header, &days)?;
    for (title, counts) in [("agent", &report.resources), ("caller", &report.callers)] {
        for count in counts {
            console.print_line(&format!(
                "{title:<8} {} {}",
                count.answers,
                terminal::escape_line(&count.name)
            ))?;
        }
    }
    Ok(())
}

/// Prints a template, or the names of all templates.
pub fn print_policy_template(name: Option<&str>, console: &Console) -> CommandResult {
    let Some(name) = name else {
        let names: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
        return console.print_result(&json!({ "templates": names }), || {
            for (name, text) in TEMPLATES {
                let first = text.lines().next().unwrap_or_default();
                console.print_line(&format!("{name:<22} {}", first.trim_start_matches("// ")))?;
            }
            Ok(())
        });
    };
    let named_template = TEMPLATES.iter().find(|(known, _)| *known == name);
    let (_, text) = named_template.ok_or_else(|| {
        CommandError::new(format!(
            "the template {name} does not exist; `policy template` lists all"
        ))
    })?;
    console.print_lines(text.trim_end())?;
    Ok(CommandOutcome::Done)
}
