//! `review`: the curators' queue.

mod bulk;
mod notes;

use a2a_registry_api::{NewComment, Review, ReviewDecision, ReviewDetail, ReviewPatch};
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::timestamp::Timestamp;
use clap::{Args, Subcommand};
use uuid::Uuid;

use super::client::{Client, RegistryResponse};
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};
use super::show::{format_break_glass, print_card_diff, print_similar_and_duplicates};
use super::signature_text::signature_lines;
use super::{agent, program_name, table, terminal};

/// Subcommands of `review`.
#[derive(Subcommand, Debug, Clone)]
pub enum ReviewCommand {
    /// List reviews, oldest first; without the curator role, only those of your own agents
    List {
        /// open, approved, rejected, superseded, withdrawn, or all
        #[arg(long, value_name = "STATE", default_value = "open")]
        state: String,
        #[command(flatten)]
        filter: ReviewFilterArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a review
    Show {
        /// Id of the review
        id: Uuid,
    },
    /// Approve the content of a review or, with --all-matching, of up to 50 open reviews that match the filters
    Approve(ReviewDecisionArgs),
    /// Reject the content of a review or, with --all-matching, of up to 50 open reviews that match the filters.
    /// Rejecting a report puts the agent on hold
    Reject(ReviewDecisionArgs),
    /// Approve the content of a review alone in an emergency; others must confirm that within 24 hours
    BreakGlass(BreakGlassArgs),
    /// Withdraw your approval of a review that needs more approvals
    WithdrawApproval {
        /// Id of the review
        id: Uuid,
    },
    /// Comment on a review
    Comment {
        /// Id of the review
        id: Uuid,
        /// The comment
        text: String,
    },
    /// Set who should decide a review, and by when
    Assign {
        /// Id of the review
        id: Uuid,
        /// Account that should decide it; empty for none
        #[arg(long, value_name = "ACCOUNT", required_unless_present = "due")]
        to: Option<String>,
        /// Due time: a date such as 2027-01-31, an RFC 3339 timestamp, or empty for none
        #[arg(long, value_name = "TIME")]
        due: Option<String>,
    },
}

/// Filter for reviews.
#[derive(Args, Debug, Clone, Default)]
pub struct ReviewFilterArgs {
    /// admission, report, recertification or `break_glass`
    #[arg(long, value_name = "KIND")]
    kind: Option<ReviewKind>,
    /// first, none, low, high or critical; may be repeated
    #[arg(long, value_name = "CLASS", value_parser = ["first", "none", "low", "high", "critical"])]
    change: Vec<String>,
    /// Only reviews of agents of this domain
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Only reviews of cards whose source this account registered
    #[arg(long, value_name = "ACCOUNT")]
    submitter: Option<String>,
    /// Only reviews of agents of this provider
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Only reviews of cards with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only reviews of cards that require this authentication
    #[arg(long, value_name = "AUTH")]
    auth: Option<String>,
    /// Only reviews of cards with an interface on this host
    #[arg(long, value_name = "HOST")]
    endpoint_host: Option<String>,
    /// Only reviews assigned to this account; `me` for yours
    #[arg(long, value_name = "ACCOUNT")]
    assignee: Option<String>,
    /// Only reviews of your own agents
    #[arg(long)]
    mine: bool,
}

impl ReviewFilterArgs {
    /// Query parameters for a page of the list.
    pub fn query_parameters(
        &self,
        state: Option<&str>,
        page: &PageArgs,
    ) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        query.extend(state.map(|state| ("state", state.to_owned())));
        query.extend(self.kind.map(|kind| ("kind", kind.to_string())));
        query.extend(
            self.change
                .iter()
                .map(|class| ("change_class", class.clone())),
        );
        for (name, value) in [
            ("domain", &self.domain),
            ("submitter", &self.submitter),
            ("provider", &self.provider),
            ("tag", &self.tag),
            ("auth", &self.auth),
            ("endpoint_host", &self.endpoint_host),
            ("assignee", &self.assignee),
        ] {
            query.extend(value.clone().map(|value| (name, value)));
        }
        query.extend(self.mine.then(|| ("mine", "true".to_owned())));
        query.extend(page.limit.map(|size| ("page_size", size.to_string())));
        query.extend(page.page_token.clone().map(|token| ("page_token", token)));
        query
    }

    /// The filter as command-line options.
    fn to_flags(&self) -> String {
        let option = |(name, value): (&str, String)| match name {
            "mine" => " --mine".to_owned(),
            "change_class" => format!(" --change {value}"),
            name => {
                let option = name.replace('_', "-");
                format!(" --{option} {}", program_name::shell_quote(&value))
            }
        };
        let query = self.query_parameters(None, &PageArgs::default());
        query.into_iter().map(option).collect()
    }
}

/// Arguments of a decision.
#[derive(Args, Debug, Clone)]
pub struct ReviewDecisionArgs {
    /// Id of the review
    #[arg(
        required_unless_present = "all_matching",
        conflicts_with = "all_matching"
    )]
    id: Option<Uuid>,
    /// Digest of the content to decide on; if the review is about other content, nothing is decided [default: the
    /// review's content, whose digest is printed]
    #[arg(long, value_name = "SHA256", conflicts_with = "all_matching")]
    digest: Option<String>,
    /// Reason, stored with the decision
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Decide all open reviews that match these filters, after showing them
    #[arg(long)]
    all_matching: bool,
    #[command(flatten)]
    filter: ReviewFilterArgs,
    /// With --all-matching: do not ask for confirmation
    #[arg(long, short, requires = "all_matching")]
    yes: bool,
}

/// Arguments of an approval by break glass.
#[derive(Args, Debug, Clone)]
pub struct BreakGlassArgs {
    /// Id of the review
    id: Uuid,
    /// Digest of the content to decide on; if the review is about other content, nothing is decided [default: the
    /// review's content, whose digest is printed]
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    /// Reason, shown to everyone who sees the agent
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub async fn run_review_command(
    command: &ReviewCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match command {
        ReviewCommand::List {
            state,
            filter,
            page,
        } => list_reviews(state, filter, page, client, console).await,
        ReviewCommand::Show { id } => {
            let reply = client.review(*id).await?;
            console.print_result(&reply, || print_review(console, &reply.value))
        }
        ReviewCommand::Approve(decision) => {
            decide_review("approve", decision, client, console).await
        }
        ReviewCommand::Reject(decision) => decide_review("reject", decision, client, console).await,
        ReviewCommand::BreakGlass(alone) => approve_by_break_glass(alone, client, console).await,
        ReviewCommand::WithdrawApproval { id } => {
            print_review_state(console, &client.withdraw_approval(*id).await?)
        }
        ReviewCommand::Comment { id, text } => {
            let new = NewComment { text: text.clone() };
            let reply = client.comment(*id, &new).await?;
            console.print_result(&reply, || {
                console.print_line(&format!("commented as {}", reply.value.author))
            })
        }
        ReviewCommand::Assign { id, to, due } => {
            let patch = ReviewPatch {
                assignee: to.clone(),
                due: due.as_deref().map(parse_due_time).transpose()?,
            };
            print_review_state(console, &client.patch_review(*id, &patch).await?)
        }
    }
}

/// Parses a due time; an empty one stays empty.
fn parse_due_time(text: &str) -> Result<String, CommandError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    agent::parse_day_or_time(text)
        .map(Timestamp::to_rfc3339)
        .map_err(|error| CommandError::new(format!("--due: {error}")))
}

async fn list_reviews(
    state: &str,
    filter: &ReviewFilterArgs,
    page: &PageArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let state_filter = match state {
        "all" => None,
        state => Some(
            state
                .parse::<ReviewState>()
                .map_err(|error| CommandError::new(format!("--state: {error}, all")))?,
        ),
    };
    let state_filter = state_filter.map(ReviewState::as_str);
    let reply = client
        .reviews(&filter.query_parameters(state_filter, page))
        .await?;
    let list_format = ListFormat {
        command: &format!("review list --state {state}{}", filter.to_flags()),
        limit: page.limit,
        header: ["REVIEW", "AGENT", "DOMAIN", "CHANGE", "STATE", "SINCE"],
        empty_message: &format!("no review is {state}"),
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.reviews, next, |review| {
        [
            review.id.to_string(),
            console.shorten(&review.name, 40),
            review.domain.clone(),
            format_review_change(review),
            review.state.to_string(),
            review.created_at.to_readable(),
        ]
    })
}

pub(super) fn format_review_change(review: &Review) -> String {
    if review.kind != ReviewKind::Admission {
        return review.kind.to_string();
    }
    review
        .change_class
        .as_ref()
        .map_or_else(|| "first card".to_owned(), ToString::to_string)
}

fn print_review(console: &Console, detail: &ReviewDetail) -> Result<(), CommandError> {
    print_review_fields(console, detail)?;
    for line in signature_lines(console, &detail.review.signature_verdict) {
        console.print_line(&line)?;
    }
    for interface in &detail.interfaces {
        let version = interface
            .protocol_version
            .as_deref()
            .unwrap_or("(no version)");
        console.print_line(&format!(
            "interface {} {version} at {}",
            interface.binding, interface.url
        ))?;
    }
    for finding in &detail.findings {
        console.print_line(&format!(
            "finding: {} {} {}: {} ({})",
            finding.severity, finding.rule, finding.pointer, finding.hint, finding.found
        ))?;
    }
    notes::print_review_details(console, detail)?;
    print_similar_and_duplicates(console, &detail.similar, detail.duplicates.as_ref())?;
    if let Some(diff) = &detail.diff {
        print_card_diff(console, diff)?;
    }
    match &detail.card_text {
        Some(text) => {
            console.print_line("card:")?;
            console.print_lines(text)
        }
        None => console.print_line("card: the bytes are no longer stored"),
    }
}

/// Proofs and owner of a domain, in one line.
fn format_proofs(detail: &ReviewDetail) -> String {
    let domain_proofs = &detail.domain_proofs;
    let mut parts = vec![domain_proofs.state.to_string()];
    let owner = domain_proofs
        .owner
        .as_ref()
        .map(|_| domain_proofs.owner_description());
    parts.extend(owner.map(|owner| format!("owner {owner}")));
    parts.extend(domain_proofs.proofs.iter().map(|proof| {
        let missing = proof.missing_since.map_or_else(String::new, |since| {
            format!(", missing since {}", since.to_readable())
        });
        format!(
            "proved by {} since {}{missing}",
            proof.method,
            proof.at.to_readable()
        )
    }));
    if !domain_proofs.enrolled_keys.is_empty() {
        parts.push(format!(
            "enrolled keys {}",
            domain_proofs.enrolled_keys.join(", ")
        ));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

fn print_review_fields(console: &Console, detail: &ReviewDetail) -> Result<(), CommandError> {
    let review = &detail.review;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    table::print_fields(
        console,
        &[
            ("review", review.id.to_string()),
            ("state", review.state.to_string()),
            ("agent", format!("{} ({})", review.name, review.agent)),
            ("domain", review.domain.clone()),
            ("domain's proofs", format_proofs(detail)),
            ("coverage", detail.proof_coverage_text()),
            ("change", format_review_change(review)),
            ("access", detail.security.join("; or ")),
            ("digest", review.digest.clone()),
            ("approved before", text(&review.previous)),
            ("registered by", text(&review.submitter)),
            ("opened", review.created_at.to_readable()),
            (
                "decided",
                review
                    .decided_at
                    .map(|at| at.to_readable())
                    .unwrap_or_default(),
            ),
            ("decided by", review.deciders.join(", ")),
            ("assigned to", text(&review.assignee)),
            (
                "due",
                review.due.map(Timestamp::to_readable).unwrap_or_default(),
            ),
            ("sponsor", text(&detail.sponsor)),
            (
                "break-glass",
                format_break_glass(detail.break_glass.as_ref()),
            ),
            ("you cannot decide", text(&detail.cannot_decide)),
            ("reason", text(&review.reason)),
        ],
    )
}

async fn decide_review(
    verb: &str,
    decision: &ReviewDecisionArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let Some(id) = decision.id else {
        return bulk::decide_matching_reviews(verb == "approve", decision, client, console).await;
    };
    let body = ReviewDecision {
        digest: resolve_digest_to_decide(id, decision.digest.as_ref(), client).await?,
        reason: decision.reason.clone(),
    };
    print_review_state(console, &client.decide(id, verb, &body).await?)
}

async fn approve_by_break_glass(
    arguments: &BreakGlassArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let body = ReviewDecision {
        digest: resolve_digest_to_decide(arguments.id, arguments.digest.as_ref(), client).await?,
        reason: arguments.reason.clone(),
    };
    let reply = client.decide(arguments.id, "break-glass", &body).await?;
    let review = &reply.value;
    let until = review.due.map(Timestamp::to_readable).unwrap_or_default();
    console.print_result(&reply, || {
        console.print_line(&format!(
            "{} ({}) is approved by you alone until {until}; others must confirm it in review {}{}",
            review.name,
            review.agent,
            review.id,
            review.served_clause()
        ))
    })
}

/// Digest to decide on: the given one, otherwise the review's, which is printed.
async fn resolve_digest_to_decide(
    id: Uuid,
    given_digest: Option<&String>,
    client: &Client,
) -> Result<String, CommandError> {
    if let Some(digest) = given_digest {
        return Ok(digest.clone());
    }
    let review = client.review(id).await?.value.review;
    terminal::eprint_note(&format!(
        "deciding on {} of {} ({}); its signature is {}: {}",
        review.digest,
        review.name,
        review.domain,
        review.signature_verdict.state,
        review.signature_verdict.reason
    ));
    Ok(review.digest)
}

fn print_review_state(console: &Console, reply: &RegistryResponse<Review>) -> CommandResult {
    console.print_result(reply, || console.print_line(&describe_review(&reply.value)))
}

/// State of a review's subject, the approvals that it still needs, and the content that is served now.
fn describe_review(review: &Review) -> String {
    let subject = review.subject_phrase();
    let state_text = format!("{subject} ({}) is {}", review.agent, review.state);
    let served_text = review.served_clause();
    if review.state != ReviewState::Open {
        return state_text + &served_text;
    }
    let counting = review.approvals.iter().filter(|one| one.counts).count();
    format!(
        "{state_text}: {counting} of {} approvals{served_text}",
        review.approvals_needed
    )
}
