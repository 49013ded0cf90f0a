//! `review`: the curators' queue.

use a2a_registry_api::{Review, ReviewDecision, ReviewDetail};
use a2a_registry_domain::review::ReviewState;
use clap::{Args, Subcommand};
use uuid::Uuid;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::list::{PageArgs, next_page};
use super::show::{print_diff, print_similar};
use super::signature::signature_lines;
use super::{table, terminal};

/// What `review` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum ReviewCommand {
    /// List reviews, oldest first
    List {
        /// open, approved, rejected, superseded, withdrawn, or all
        #[arg(long, value_name = "STATE", default_value = "open")]
        state: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a review
    Show {
        /// The review's id
        id: Uuid,
    },
    /// Approve the content a review is about
    Approve(DecisionArgs),
    /// Reject the content a review is about
    Reject(DecisionArgs),
}

/// A decision.
#[derive(Args, Debug, Clone)]
pub struct DecisionArgs {
    /// The review's id
    id: Uuid,
    /// The content decided on, so that nothing newer is decided by accident; asked for where not given
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    /// Why; kept with the decision
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Does it.
///
/// # Errors
/// Where the registry is away or refuses.
pub async fn run(
    command: &ReviewCommand,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    match command {
        ReviewCommand::List { state, page } => list(state, page, client, console).await,
        ReviewCommand::Show { id } => {
            let reply = client.review(*id).await?;
            if console.json {
                console.raw_json(&reply.raw)?;
            } else {
                show(console, &reply.value)?;
            }
            Ok(CommandOutcome::Done)
        }
        ReviewCommand::Approve(decision) => decide("approve", decision, client, console).await,
        ReviewCommand::Reject(decision) => decide("reject", decision, client, console).await,
    }
}

async fn list(
    state: &str,
    page: &PageArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let asked = match state {
        "all" => None,
        state => Some(
            state
                .parse::<ReviewState>()
                .map_err(|error| Failure::new(format!("--state: {error}, all")))?,
        ),
    };
    let asked = asked.map(ReviewState::as_str);
    let reply = client
        .reviews(asked, page.limit, page.page_token.as_deref())
        .await?;
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(CommandOutcome::of_list(&reply.value.reviews));
    }
    if reply.value.reviews.is_empty() {
        terminal::note(&format!("no review is {state}"));
        return Ok(CommandOutcome::No);
    }
    let rows: Vec<_> = reply
        .value
        .reviews
        .iter()
        .map(|review| {
            vec![
                review.id.to_string(),
                console.short(&review.name, 40),
                review.domain.clone(),
                change(review),
                review.state.to_string(),
                review.created_at.to_rfc3339(),
            ]
        })
        .collect();
    table::print(
        console,
        &["REVIEW", "AGENT", "DOMAIN", "CHANGE", "STATE", "SINCE"],
        &rows,
    )?;
    let command = format!("review list --state {state}");
    next_page(&command, page.limit, reply.value.next_page_token.as_deref());
    Ok(CommandOutcome::Done)
}

fn change(review: &Review) -> String {
    review
        .change_class
        .as_ref()
        .map_or_else(|| "first card".to_owned(), ToString::to_string)
}

fn show(console: &Console, detail: &ReviewDetail) -> Result<(), Failure> {
    facts(console, detail)?;
    for line in signature_lines(console, &detail.review.signature_verdict) {
        console.line(&line)?;
    }
    for interface in &detail.interfaces {
        let version = interface
            .protocol_version
            .as_deref()
            .unwrap_or("(no version)");
        console.line(&format!(
            "interface {} {version} at {}",
            interface.binding, interface.url
        ))?;
    }
    for finding in &detail.findings {
        console.line(&format!(
            "finding: {} {} {}: {} ({})",
            finding.severity, finding.rule, finding.pointer, finding.hint, finding.found
        ))?;
    }
    print_similar(console, &detail.similar, detail.duplicates.as_ref())?;
    if let Some(diff) = &detail.diff {
        print_diff(console, diff)?;
    }
    match &detail.card_text {
        Some(text) => {
            console.line("card:")?;
            console.lines(text)
        }
        None => console.line("card: the bytes are no longer kept"),
    }
}

/// Who stands behind a domain, in one line.
fn proofs(detail: &ReviewDetail) -> String {
    let known = &detail.domain_proofs;
    let mut parts = vec![known.state.to_string()];
    parts.extend(known.owner.iter().map(|owner| format!("owner {owner}")));
    parts.extend(known.proofs.iter().map(|proof| {
        let missing = proof.missing_since.map_or_else(String::new, |since| {
            format!(", missing since {}", since.to_rfc3339())
        });
        format!(
            "proved by {} since {}{missing}",
            proof.method,
            proof.at.to_rfc3339()
        )
    }));
    if !known.enrolled_keys.is_empty() {
        parts.push(format!("enrolled keys {}", known.enrolled_keys.join(", ")));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

fn facts(console: &Console, detail: &ReviewDetail) -> Result<(), Failure> {
    let review = &detail.review;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    table::facts(
        console,
        &[
            ("review", review.id.to_string()),
            ("state", review.state.to_string()),
            ("agent", format!("{} ({})", review.name, review.agent)),
            ("domain", review.domain.clone()),
            ("domain's proofs", proofs(detail)),
            ("coverage", detail.coverage_meaning()),
            ("change", change(review)),
            ("access", detail.security.join("; or ")),
            ("digest", review.digest.clone()),
            ("approved before", text(&review.previous)),
            ("registered by", text(&review.submitter)),
            ("opened", review.created_at.to_rfc3339()),
            (
                "decided",
                review
                    .decided_at
                    .map(|at| at.to_rfc3339())
                    .unwrap_or_default(),
            ),
            ("decided by", review.deciders.join(", ")),
            ("reason", text(&review.reason)),
        ],
    )
}

async fn decide(
    verb: &str,
    decision: &DecisionArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let digest = match &decision.digest {
        Some(digest) => digest.clone(),
        None => {
            let review = client.review(decision.id).await?.value.review;
            terminal::note(&format!(
                "deciding on {} of {} ({}); its signature is {}: {}",
                review.digest,
                review.name,
                review.domain,
                review.signature_verdict.state,
                review.signature_verdict.reason
            ));
            review.digest
        }
    };
    let body = ReviewDecision {
        digest,
        reason: decision.reason.clone(),
    };
    let reply = client.decide(decision.id, verb, &body).await?;
    if console.json {
        console.raw_json(&reply.raw)?;
    } else {
        let review = &reply.value;
        console.line(&format!(
            "{} ({}) is {}",
            review.name, review.agent, review.state
        ))?;
    }
    Ok(CommandOutcome::Done)
}
