//! `show`: shows an agent, its card, its versions, its findings, or what changed.

use a2a_card::ConversionTarget;
use a2a_registry_api::{
    Agent, BreakGlass, Decision, Diff, Duplicates, EndpointDetails, FindingView, Hit, Similar,
    Summary,
};
use a2a_registry_domain::endpoint::EndpointState;
use clap::Args;
use uuid::Uuid;

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::list_format::PageArgs;
use super::search::{format_interfaces, trust_level_text};
use super::send::agent_call::{self, AgentCallArgs};
use super::signature_text::signature_lines;
use super::{table, terminal};

/// Conversion rule for cards by which no client of the version can call the agent.
const NO_CLIENT_RULE: &str = "convert.no-client";

/// Heading of the options that select the output, in the help.
const SHOWN_HEADING: &str = "What is shown";

/// Arguments of `show`.
#[derive(Args, Clone)]
pub struct ShowArgs {
    #[command(flatten, next_help_heading = "With --extended, which asks the agent")]
    agent: AgentCallArgs,
    /// Write the approved card, byte for byte as the agent published it
    #[arg(long, help_heading = SHOWN_HEADING, conflicts_with_all = ["versions", "findings", "diff", "similar"])]
    card: bool,
    /// With --card: write it in the form of another protocol version, 1.0 or 0.3; unsigned and marked as converted;
    /// losses are reported on standard error
    #[arg(long = "as", help_heading = SHOWN_HEADING, value_name = "VERSION", requires = "card")]
    convert: Option<ConversionTarget>,
    /// Request from the agent itself the card that callers with credentials see
    #[arg(long, help_heading = SHOWN_HEADING, conflicts_with_all = ["card", "versions", "findings", "diff", "similar"])]
    extended: bool,
    /// List the stored versions of its card
    #[arg(long, help_heading = SHOWN_HEADING, conflicts_with_all = ["findings", "diff", "similar"])]
    versions: bool,
    /// List the linter's findings about its card
    #[arg(long, help_heading = SHOWN_HEADING, conflicts_with_all = ["diff", "similar"])]
    findings: bool,
    /// List the changes of its card: the newest version compared with the served one
    #[arg(long, help_heading = SHOWN_HEADING, conflicts_with = "similar")]
    diff: bool,
    /// With --diff: digest of the older version
    #[arg(long, help_heading = SHOWN_HEADING, value_name = "DIGEST", requires = "diff")]
    from: Option<String>,
    /// With --diff: digest of the newer version
    #[arg(long, help_heading = SHOWN_HEADING, value_name = "DIGEST", requires = "diff")]
    to: Option<String>,
    /// List the agents that are similar to it, and its duplicates
    #[arg(long, help_heading = SHOWN_HEADING)]
    similar: bool,
}

/// Requests the extended card from the agent, and prints it as JSON.
async fn print_extended_card(
    arguments: &ShowArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let agent = agent_call::open_agent_client(&arguments.agent, client, console).await?;
    let card = agent.fetch_extended_card().await?;
    console.print_result(&card, || {
        let text = serde_json::to_string_pretty(&card);
        let text = text.map_err(|error| CommandError::new(error.to_string()))?;
        console.write_bytes(terminal::escape_lines(&(text + "\n")).as_bytes())
    })
}

pub async fn run_show(arguments: &ShowArgs, client: &Client, console: &Console) -> CommandResult {
    if arguments.extended {
        return print_extended_card(arguments, client, console).await;
    }
    let id = client
        .find_agent_to_show(&arguments.agent.agent)
        .await?
        .summary
        .id;
    if arguments.card {
        let bytes = match arguments.convert {
            None => client.card(id).await,
            Some(target) => client
                .converted_card(id, target)
                .await
                .map(|(bytes, losses)| {
                    print_conversion_losses(target, &losses);
                    bytes
                }),
        };
        console.write_bytes(&bytes?)?;
        Ok(CommandOutcome::Done)
    } else if arguments.versions {
        print_card_versions(id, client, console).await
    } else if arguments.findings {
        let reply = client.findings(id).await?;
        console.print_result(&reply, || print_findings(console, &reply.value.findings))
    } else if arguments.similar {
        print_similar_agents(id, client, console).await
    } else if arguments.diff {
        let (from, to) = (arguments.from.as_deref(), arguments.to.as_deref());
        let reply = client.diff(id, &[("from", from), ("to", to)]).await?;
        console.print_result(&reply, || print_card_diff(console, &reply.value))
    } else {
        let reply = client.agent(id).await?;
        // The details are only for the owner, curators and auditors.
        let is_checked = reply.value.hit.summary.endpoint.state != EndpointState::NotChecked;
        let checks = match is_checked && !console.json {
            true => client.endpoint(id).await?.value.details,
            false => None,
        };
        console.print_result(&reply, || {
            print_agent(console, &reply.value)?;
            let lines = checks.iter().flat_map(endpoint_lines);
            lines
                .into_iter()
                .try_for_each(|line| console.print_line(&line))
        })
    }
}

/// The last check of an agent's endpoint, and its history.
fn endpoint_lines(checks: &EndpointDetails) -> Vec<String> {
    let elapsed = checks.elapsed_ms.map(|ms| format!(", {ms} ms"));
    let scheme = checks
        .auth_scheme
        .as_ref()
        .map(|scheme| format!(" Scheme: {scheme}."));
    vec![
        format!(
            "endpoint check at {} ({}){}: {}{}",
            checks.url,
            checks.binding,
            elapsed.unwrap_or_default(),
            checks.reason.as_deref().unwrap_or("not made yet"),
            scheme.unwrap_or_default()
        ),
        format!("endpoint history: {}", checks.history_sentence()),
    ]
}

/// Reports the losses of a conversion on standard error, so that standard output is only the card.
fn print_conversion_losses(target: ConversionTarget, losses: &[String]) {
    if losses.iter().any(|rule| rule == NO_CLIENT_RULE) {
        terminal::eprint_note(&format!(
            "no client of {target} can call the agent with this card"
        ));
    }
    for id in losses {
        let known_rule = a2a_card::all_rules().iter().find(|rule| rule.id == id);
        terminal::eprint_note(&match known_rule {
            Some(rule) => format!("{id}: not met: {}; {}", rule.summary, rule.hint),
            None => format!("{id}: see that registry's rules"),
        });
    }
}

async fn print_card_versions(id: Uuid, client: &Client, console: &Console) -> CommandResult {
    let mut token = None;
    let mut rows = Vec::new();
    loop {
        let reply = client
            .versions(id, &PageArgs::with_max_limit(token))
            .await?;
        if console.json {
            console.print_raw_json(&reply.raw)?;
        }
        rows.extend(reply.value.versions.iter().map(|version| {
            vec![
                version.observed_at.to_readable(),
                version.state.to_string(),
                if version.served {
                    "served".to_owned()
                } else {
                    String::new()
                },
                version
                    .change_class
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                version.signature_verdict.state.to_string(),
                version.wire_family.clone(),
                version.digest.clone(),
            ]
        }));
        token = reply.value.next_page_token;
        if token.is_none() {
            break;
        }
    }
    let outcome = CommandOutcome::done_unless_empty(&rows);
    if console.json {
        return Ok(outcome);
    }
    if rows.is_empty() {
        terminal::eprint_note("no version is visible to you");
        return Ok(outcome);
    }
    table::print_table(
        console,
        &[
            "SEEN",
            "STATE",
            "",
            "CHANGE",
            "SIGNATURE",
            "FORMAT",
            "DIGEST",
        ],
        &rows,
    )?;
    Ok(outcome)
}

async fn print_similar_agents(id: Uuid, client: &Client, console: &Console) -> CommandResult {
    let reply = client.similar(id).await?;
    let Similar {
        agents,
        mode,
        duplicates,
    } = &reply.value;
    console.print_result(&reply, || {
        print_similar_and_duplicates(console, agents, duplicates.as_ref())?;
        terminal::eprint_note(match agents.is_empty() {
            true => "no listed agent is similar to it",
            false if mode == "semantic" => "compared by meaning",
            false => "compared by words",
        });
        Ok(())
    })?;
    Ok(CommandOutcome::done_unless_empty(agents))
}

/// Similar agents and duplicates, one line each.
pub fn print_similar_and_duplicates(
    console: &Console,
    similar: &[Hit],
    duplicates: Option<&Duplicates>,
) -> Result<(), CommandError> {
    for hit in similar {
        let summary = &hit.summary;
        console.print_line(&format!(
            "similar: {} ({}) of {}, trust {}",
            summary.name,
            summary.id,
            summary.domain,
            trust_level_text(summary)
        ))?;
    }
    if let Some(duplicates) = duplicates {
        console.print_line(&format!("duplicates: {}", duplicates.count))?;
        for id in &duplicates.agents {
            console.print_line(&format!("duplicate: {id}"))?;
        }
    }
    Ok(())
}

/// Prints a table of findings, or a note that there are none.
pub fn print_findings(console: &Console, findings: &[FindingView]) -> Result<(), CommandError> {
    if findings.is_empty() {
        terminal::eprint_note("there are no findings");
        return Ok(());
    }
    let rows: Vec<_> = findings
        .iter()
        .map(|finding| {
            let pointer = if finding.pointer.is_empty() {
                "(card)"
            } else {
                &finding.pointer
            };
            let found_text = if finding.found.is_empty() {
                String::new()
            } else {
                format!(" (found {})", console.shorten(&finding.found, 40))
            };
            vec![
                finding.severity.clone(),
                finding.rule.clone(),
                console.shorten(pointer, 40),
                format!("{}{found_text}", finding.hint),
                finding.section.clone(),
            ]
        })
        .collect();
    table::print_table(
        console,
        &["SEVERITY", "RULE", "WHERE", "WHAT TO DO", "SECTION"],
        &rows,
    )
}

/// Prints the changes and their class.
pub fn print_card_diff(console: &Console, diff: &Diff) -> Result<(), CommandError> {
    let text = |value: &Option<serde_json::Value>| match value {
        None => "-".to_owned(),
        Some(serde_json::Value::String(text)) => console.shorten(text, 60),
        Some(other) => console.shorten(&other.to_string(), 60),
    };
    let rows: Vec<_> = diff
        .changes
        .iter()
        .map(|change| {
            vec![
                change.class.to_string(),
                console.shorten(&change.pointer, 60),
                text(&change.before),
                text(&change.after),
                change.reason.clone(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        table::print_table(
            console,
            &["CLASS", "WHERE", "BEFORE", "AFTER", "WHY"],
            &rows,
        )?;
    }
    if diff.from == diff.to {
        terminal::eprint_note(
            "only this version is visible to you; there is nothing to compare it with",
        );
    }
    let more = if diff.cut { ", and there are more" } else { "" };
    terminal::eprint_note(&format!(
        "the change from {} to {} is of class {}; changes: {}{more}",
        diff.from,
        diff.to,
        diff.change_class,
        rows.len()
    ));
    Ok(())
}

fn print_agent(console: &Console, agent: &Agent) -> Result<(), CommandError> {
    let summary = &agent.hit.summary;
    table::print_fields(console, &agent_fields(agent))?;
    for line in signature_lines(console, &agent.signature_verdict) {
        console.print_line(&line)?;
    }
    for hold in &agent.holds {
        console.print_line(&format!(
            "on hold: {} since {}: {}",
            hold.hold,
            hold.since.to_readable(),
            hold.reason
        ))?;
    }
    if let Some(hidden) = &agent.hidden_from {
        console.print_line(&hidden.sentence())?;
    }
    for interface in &summary.interfaces {
        let version = interface.protocol_version.as_deref().unwrap_or_default();
        console.print_line(&format!(
            "interface {} {version} at {}",
            interface.binding, interface.url
        ))?;
    }
    if let Some(url) = &agent.assumed_url {
        console.print_line(&format!("no interface; `send` assumes {url}"))?;
    }
    for skill in &summary.skills {
        let description = skill.description.as_ref().map(|text| format!(": {text}"));
        console.print_line(&format!(
            "skill {} ({}){}",
            skill.name,
            skill.id,
            description.unwrap_or_default()
        ))?;
    }
    Ok(())
}

/// Fields of an agent, each with a heading.
fn agent_fields(agent: &Agent) -> Vec<(&'static str, String)> {
    let summary = &agent.hit.summary;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let time_text = |at: Option<a2a_registry_domain::timestamp::Timestamp>| {
        at.map(|at| at.to_readable()).unwrap_or_default()
    };
    let provider = summary.provider.as_ref().map(|provider| {
        [text(&provider.organization), text(&provider.url)]
            .join(" ")
            .trim()
            .to_owned()
    });
    let deprecation = summary.deprecation.as_ref();
    let deprecation = deprecation.map(a2a_registry_api::Deprecation::sentence);
    let labels: Vec<_> = summary
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let liveness = match &summary.liveness.reason {
        Some(reason) => format!("{} ({reason})", summary.liveness.state),
        None => summary.liveness.state.to_string(),
    };
    vec![
        ("name", summary.name.clone()),
        ("id", summary.id.to_string()),
        ("urn", text(&summary.urn)),
        ("former urn", text(&agent.former_urn)),
        ("description", text(&summary.description)),
        ("version", text(&summary.version)),
        ("provider", provider.unwrap_or_default()),
        ("domain", summary.domain.clone()),
        ("state", summary.lifecycle.to_string()),
        ("deprecated", deprecation.unwrap_or_default()),
        ("visibility", summary.visibility.to_string()),
        ("liveness", liveness),
        ("endpoint", summary.endpoint.text()),
        ("last seen", time_text(summary.liveness.last_seen)),
        ("changed", time_text(summary.liveness.last_changed)),
        ("trust", format_trust(summary)),
        ("coverage", agent.proof_coverage_text()),
        ("speaks", format_interfaces(summary)),
        ("tags", summary.tags.join(", ")),
        ("labels", labels.join(", ")),
        ("access", agent.security.join("; or ")),
        ("digest", summary.card_digest.clone()),
        ("sponsor", text(&agent.sponsor)),
        ("decided", format_card_decision(&agent.decision)),
        (
            "break-glass",
            format_break_glass(agent.break_glass.as_ref()),
        ),
        ("card", summary.links.card.clone()),
        ("resolver", summary.links.resolver.clone()),
        ("origin", text(&summary.links.origin)),
    ]
}

/// Level of trust, and its reasons.
fn format_trust(summary: &Summary) -> String {
    format!(
        "{}, domain {}, signature {}",
        trust_level_text(summary),
        summary.trust.domain,
        summary.trust.signature
    )
}

/// Decision on the served card: by whom, when and why.
fn format_card_decision(decision: &Decision) -> String {
    let reason = decision.reason.as_ref();
    let reason = reason.map(|reason| format!(": {reason}"));
    format!(
        "{} by {} on {}{}{}{}",
        decision.state,
        decision.by,
        decision.at.to_readable(),
        reason.unwrap_or_default(),
        format_decision_rules(&decision.rules),
        decision.expires_at.map_or_else(String::new, |at| format!(
            "; expires on {}",
            at.to_readable()
        ))
    )
}

/// Break-glass approval: by whom, until when it must be confirmed, and why.
pub(super) fn format_break_glass(break_glass: Option<&BreakGlass>) -> String {
    break_glass.map_or_else(String::new, |broken| {
        format!(
            "approved by {} alone; must be confirmed before {}: {}",
            broken.by,
            broken.until.to_readable(),
            broken.reason
        )
    })
}

fn format_decision_rules(rules: &[String]) -> String {
    if rules.is_empty() {
        String::new()
    } else {
        format!(" (rule {})", rules.join(", "))
    }
}
