//! `show`: one agent, its card, its versions, its findings, or what changed.

use a2a_card::ConversionTarget;
use a2a_registry_api::{Agent, Decision, Diff, Duplicates, FindingView, Hit, Similar, Summary};
use clap::Args;
use uuid::Uuid;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::list::PageArgs;
use super::search::{speaks, trust};
use super::send::agent::{self, AgentArgs};
use super::signature::signature_lines;
use super::{table, terminal};

/// The rule of conversions that no client of the version can call the agent.
const NO_CLIENT: &str = "convert.no-client";

/// The heading of what `show` shows of the registry, in its help.
const SHOWN: &str = "What is shown";

/// What `show` takes.
#[derive(Args, Clone)]
pub struct ShowArgs {
    #[command(flatten, next_help_heading = "With --extended, which asks the agent")]
    agent: AgentArgs,
    /// Write the approved card, byte for byte as the agent published it
    #[arg(long, help_heading = SHOWN, conflicts_with_all = ["versions", "findings", "diff", "similar"])]
    card: bool,
    /// With --card: write it in the form of another protocol version, 1.0 or 0.3; unsigned and marked as converted; what it loses is said on standard error
    #[arg(long = "as", help_heading = SHOWN, value_name = "VERSION", requires = "card")]
    convert: Option<ConversionTarget>,
    /// Ask the agent itself for the card that callers with credentials see
    #[arg(long, help_heading = SHOWN, conflicts_with_all = ["card", "versions", "findings", "diff", "similar"])]
    extended: bool,
    /// List the kept versions of its card
    #[arg(long, help_heading = SHOWN, conflicts_with_all = ["findings", "diff", "similar"])]
    versions: bool,
    /// List what the linter found in its card
    #[arg(long, help_heading = SHOWN, conflicts_with_all = ["diff", "similar"])]
    findings: bool,
    /// List what changed in its card: the newest version against the one that is served
    #[arg(long, help_heading = SHOWN, conflicts_with = "similar")]
    diff: bool,
    /// With --diff: the digest of the older version
    #[arg(long, help_heading = SHOWN, value_name = "DIGEST", requires = "diff")]
    from: Option<String>,
    /// With --diff: the digest of the newer version
    #[arg(long, help_heading = SHOWN, value_name = "DIGEST", requires = "diff")]
    to: Option<String>,
    /// List the agents that are similar to it, and its duplicates
    #[arg(long, help_heading = SHOWN)]
    similar: bool,
}

/// Asks the agent for its extended card, and prints it as JSON.
async fn extended(arguments: &ShowArgs, client: &Client, console: &Console) -> CommandResult {
    let agent = agent::open(&arguments.agent, client, console).await?;
    let card = agent.extended_card().await?;
    console.show(&card, || {
        let text = serde_json::to_string_pretty(&card);
        let text = text.map_err(|error| Failure::new(error.to_string()))?;
        console.write(terminal::lines(&(text + "\n")).as_bytes())
    })
}

pub async fn run(arguments: &ShowArgs, client: &Client, console: &Console) -> CommandResult {
    if arguments.extended {
        return extended(arguments, client, console).await;
    }
    let id = client.find_agent(&arguments.agent.agent).await?.summary.id;
    if arguments.card {
        let bytes = match arguments.convert {
            None => client.card(id).await,
            Some(target) => client.card_as(id, target).await.map(|(bytes, losses)| {
                tell_losses(target, &losses);
                bytes
            }),
        };
        console.write(&bytes?)?;
        Ok(CommandOutcome::Done)
    } else if arguments.versions {
        versions(id, client, console).await
    } else if arguments.findings {
        let reply = client.findings(id).await?;
        console.show(&reply, || print_findings(console, &reply.value.findings))
    } else if arguments.similar {
        similar(id, client, console).await
    } else if arguments.diff {
        let (from, to) = (arguments.from.as_deref(), arguments.to.as_deref());
        let reply = client.diff(id, &[("from", from), ("to", to)]).await?;
        console.show(&reply, || print_diff(console, &reply.value))
    } else {
        let reply = client.agent(id).await?;
        console.show(&reply, || show(console, &reply.value))
    }
}

/// Says on standard error what a conversion came to, so that standard output is the card alone.
fn tell_losses(target: ConversionTarget, losses: &[String]) {
    if losses.iter().any(|rule| rule == NO_CLIENT) {
        terminal::note(&format!(
            "no client of {target} can call the agent by this card"
        ));
    }
    for id in losses {
        let known = a2a_card::rules().iter().find(|rule| rule.id == id);
        terminal::note(&match known {
            Some(rule) => format!("{id}: not met: {}; {}", rule.summary, rule.hint),
            None => format!("{id}: see that registry's rules"),
        });
    }
}

async fn versions(id: Uuid, client: &Client, console: &Console) -> CommandResult {
    let mut token = None;
    let mut rows = Vec::new();
    loop {
        let reply = client.versions(id, &PageArgs::longest(token)).await?;
        if console.json {
            console.raw_json(&reply.raw)?;
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
    let outcome = CommandOutcome::of_list(&rows);
    if console.json {
        return Ok(outcome);
    }
    if rows.is_empty() {
        terminal::note("no version of it that you may see");
        return Ok(outcome);
    }
    table::print(
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

async fn similar(id: Uuid, client: &Client, console: &Console) -> CommandResult {
    let reply = client.similar(id).await?;
    let Similar {
        agents,
        mode,
        duplicates,
    } = &reply.value;
    console.show(&reply, || {
        print_similar(console, agents, duplicates.as_ref())?;
        terminal::note(match agents.is_empty() {
            true => "no listed agent is similar to it",
            false if mode == "semantic" => "compared by meaning",
            false => "compared by words",
        });
        Ok(())
    })?;
    Ok(CommandOutcome::of_list(agents))
}

/// Similar agents and duplicates, one line each.
pub fn print_similar(
    console: &Console,
    similar: &[Hit],
    duplicates: Option<&Duplicates>,
) -> Result<(), Failure> {
    for hit in similar {
        let summary = &hit.summary;
        console.line(&format!(
            "similar: {} ({}) of {}, trust {}",
            summary.name,
            summary.id,
            summary.domain,
            trust(summary)
        ))?;
    }
    if let Some(duplicates) = duplicates {
        console.line(&format!("duplicates: {}", duplicates.count))?;
        for id in &duplicates.agents {
            console.line(&format!("duplicate: {id}"))?;
        }
    }
    Ok(())
}

/// A table of findings, or the word that there are none.
pub fn print_findings(console: &Console, findings: &[FindingView]) -> Result<(), Failure> {
    if findings.is_empty() {
        terminal::note("nothing was found");
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
            let found = if finding.found.is_empty() {
                String::new()
            } else {
                format!(" (found {})", console.short(&finding.found, 40))
            };
            vec![
                finding.severity.clone(),
                finding.rule.clone(),
                console.short(pointer, 40),
                format!("{}{found}", finding.hint),
                finding.section.clone(),
            ]
        })
        .collect();
    table::print(
        console,
        &["SEVERITY", "RULE", "WHERE", "WHAT TO DO", "SECTION"],
        &rows,
    )
}

/// What changed, and how much it matters.
pub fn print_diff(console: &Console, diff: &Diff) -> Result<(), Failure> {
    let text = |value: &Option<serde_json::Value>| match value {
        None => "-".to_owned(),
        Some(serde_json::Value::String(text)) => console.short(text, 60),
        Some(other) => console.short(&other.to_string(), 60),
    };
    let rows: Vec<_> = diff
        .changes
        .iter()
        .map(|change| {
            vec![
                change.class.to_string(),
                console.short(&change.pointer, 60),
                text(&change.before),
                text(&change.after),
                change.reason.clone(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        table::print(
            console,
            &["CLASS", "WHERE", "BEFORE", "AFTER", "WHY"],
            &rows,
        )?;
    }
    if diff.from == diff.to {
        terminal::note("this is the only version to be seen; there is nothing to compare it with");
    }
    let more = if diff.cut { ", and there are more" } else { "" };
    terminal::note(&format!(
        "the change from {} to {} is of class {}; changes: {}{more}",
        diff.from,
        diff.to,
        diff.change_class,
        rows.len()
    ));
    Ok(())
}

fn show(console: &Console, agent: &Agent) -> Result<(), Failure> {
    let summary = &agent.hit.summary;
    table::facts(console, &facts(agent))?;
    for line in signature_lines(console, &agent.signature_verdict) {
        console.line(&line)?;
    }
    for hold in &agent.holds {
        console.line(&format!(
            "on hold: {} since {}: {}",
            hold.hold,
            hold.since.to_readable(),
            hold.reason
        ))?;
    }
    for interface in &summary.interfaces {
        let version = interface.protocol_version.as_deref().unwrap_or_default();
        console.line(&format!(
            "interface {} {version} at {}",
            interface.binding, interface.url
        ))?;
    }
    if let Some(url) = &agent.assumed_url {
        console.line(&format!("no interface; `send` assumes {url}"))?;
    }
    for skill in &summary.skills {
        let description = skill.description.as_ref().map(|text| format!(": {text}"));
        console.line(&format!(
            "skill {} ({}){}",
            skill.name,
            skill.id,
            description.unwrap_or_default()
        ))?;
    }
    Ok(())
}

/// What is known of an agent in a word or a few, each under its heading.
fn facts(agent: &Agent) -> Vec<(&'static str, String)> {
    let summary = &agent.hit.summary;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let moment = |at: Option<a2a_registry_domain::timestamp::Timestamp>| {
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
        ("description", text(&summary.description)),
        ("version", text(&summary.version)),
        ("provider", provider.unwrap_or_default()),
        ("domain", summary.domain.clone()),
        ("state", summary.lifecycle.to_string()),
        ("deprecated", deprecation.unwrap_or_default()),
        ("visibility", summary.visibility.to_string()),
        ("liveness", liveness),
        ("last seen", moment(summary.liveness.last_seen)),
        ("changed", moment(summary.liveness.last_changed)),
        ("trust", trusted(summary)),
        ("coverage", agent.coverage_meaning()),
        ("speaks", speaks(summary)),
        ("tags", summary.tags.join(", ")),
        ("labels", labels.join(", ")),
        ("access", agent.security.join("; or ")),
        ("digest", summary.card_digest.clone()),
        ("sponsor", text(&agent.sponsor)),
        ("decided", decided(&agent.decision)),
        (
            "break-glass",
            super::review::alone(agent.break_glass.as_ref()),
        ),
        ("card", summary.links.card.clone()),
        ("resolver", summary.links.resolver.clone()),
        ("origin", text(&summary.links.origin)),
    ]
}

/// The level of trust, and what it stands on.
fn trusted(summary: &Summary) -> String {
    format!(
        "{}, domain {}, signature {}",
        trust(summary),
        summary.trust.domain,
        summary.trust.signature
    )
}

/// The decision on the card that is served: by whom, when and why.
fn decided(decision: &Decision) -> String {
    let reason = decision.reason.as_ref();
    let reason = reason.map(|reason| format!(": {reason}"));
    format!(
        "{} by {} on {}{}{}{}",
        decision.state,
        decision.by,
        decision.at.to_readable(),
        reason.unwrap_or_default(),
        rules(&decision.rules),
        decision
            .expires_at
            .map_or_else(String::new, |at| format!("; ends on {}", at.to_readable()))
    )
}

fn rules(rules: &[String]) -> String {
    if rules.is_empty() {
        String::new()
    } else {
        format!(" (rule {})", rules.join(", "))
    }
}
