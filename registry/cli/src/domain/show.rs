//! `domain show`: one domain on one screen, and why it or an agent of it is not listed.
//!
//! Long lists are shown as counts and their first entries; `--attempts` and `--json` show all of them.

use a2a_registry_api::{AttemptView, DomainView, OwnerFingerprint, Proof, ProofCheck, SourceView};
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::{DomainState, ProofOutcome};
use a2a_registry_domain::source::{SourceKind, SourceState};

use crate::command_error::CommandError;
use crate::console::Console;
use crate::register::describe_challenge;
use crate::{table, terminal};

/// Number of agents shown.
const MAX_AGENTS: usize = 5;
/// Number of reasons for not being listed that are shown.
const MAX_REASONS: usize = 6;
/// Number of sources shown without `--attempts`.
const MAX_SOURCES: usize = 10;
/// Number of proof checks shown, from the latest time that they ran.
const MAX_CHECKS: usize = 6;
/// Columns of a source's last failure; `--attempts` shows all of it.
const MAX_FAILURE_COLUMNS: usize = 160;

/// Prints a domain, with every stored attempt if `attempts` is set.
pub fn print_domain(
    console: &Console,
    domain: &DomainView,
    attempts: bool,
) -> Result<(), CommandError> {
    // A terminal gets a short view; piped output has everything.
    let whole = !console.interactive;
    table::print_fields(console, &domain_fields(domain, whole))?;
    domain_detail_lines(domain, attempts, whole)
        .iter()
        .try_for_each(|line| console.print_line(line))
}

/// Fields of the domain, one line each.
fn domain_fields(domain: &DomainView, show_all: bool) -> Vec<(&'static str, String)> {
    let non_empty_or = |text: String, none: &str| {
        if text.is_empty() {
            none.to_owned()
        } else {
            text
        }
    };
    let proofs: Vec<_> = domain.proofs.iter().map(format_proof).collect();
    let agents: Vec<_> = domain.agents.iter().map(ToString::to_string).collect();
    let shown = agents.len().min(shown_entry_limit(MAX_AGENTS, show_all));
    let mut agent_list = agents[..shown].join(", ");
    if agents.len() > shown {
        agent_list.push_str(&format!(" and {} more", agents.len() - shown));
    }
    vec![
        ("domain", domain.domain.clone()),
        ("state", domain.state.to_string()),
        ("generation", domain.generation.to_string()),
        ("registered", domain.created_at.to_readable()),
        ("proofs", non_empty_or(proofs.join("; "), "none")),
        (
            "next check",
            domain
                .next_check
                .map_or_else(|| "none planned".to_owned(), |at| at.to_readable()),
        ),
        ("owner", non_empty_or(format_owner(domain), "not known")),
        ("endpoints", format_endpoint_permission(domain)),
        (
            "fingerprint",
            domain
                .known_by
                .as_ref()
                .map_or_else(|| "none yet".to_owned(), format_owner_fingerprint),
        ),
        ("agents", non_empty_or(agent_list, "none yet")),
    ]
}

/// Number of entries shown of a list.
const fn shown_entry_limit(limit: usize, show_all: bool) -> usize {
    if show_all { usize::MAX } else { limit }
}

fn format_proof(proof: &Proof) -> String {
    let missing = proof
        .missing_since
        .map(|since| format!(", missing since {}", since.to_readable()));
    let reason = proof.reason.as_ref().map(|reason| format!(" ({reason})"));
    format!(
        "{} since {}{}{}",
        proof.method,
        proof.at.to_readable(),
        missing.unwrap_or_default(),
        reason.unwrap_or_default()
    )
}

/// What owner and admins say about checks of endpoints; empty if nothing was said, or it is not shown.
fn format_endpoint_permission(domain: &DomainView) -> String {
    if domain.endpoint_checks_off {
        return "not checked: the owner has turned checks off".to_owned();
    }
    domain
        .endpoint_vouch
        .as_ref()
        .map_or_else(String::new, |vouch| {
            format!("vouched for by {}: {}", vouch.by, vouch.reason)
        })
}

/// Owner, and what the ownership is based on; empty if it is not shown.
fn format_owner(domain: &DomainView) -> String {
    let owner = domain.owner.clone().unwrap_or_default();
    let Some(vouch) = &domain.owner_vouch else {
        return owner;
    };
    let until = vouch.until.to_readable();
    let vouched = format!("vouched for by an admin until {until}, not proved");
    let reason = vouch.reason.as_ref().map(|reason| format!(": {reason}"));
    let owner_text = if owner.is_empty() {
        "an account".to_owned()
    } else {
        owner
    };
    format!("{owner_text} ({vouched}{})", reason.unwrap_or_default())
}

fn format_owner_fingerprint(owner_fingerprint: &OwnerFingerprint) -> String {
    let or_none = |words: &[String]| match words {
        [] => "not seen".to_owned(),
        words => words.join(" "),
    };
    format!(
        "name servers {}; TLS key {}; card keys {} ({})",
        or_none(&owner_fingerprint.name_servers),
        owner_fingerprint.tls_key.as_deref().unwrap_or("not seen"),
        or_none(&owner_fingerprint.card_keys),
        owner_fingerprint.at.to_readable()
    )
}

/// Lists of the domain, each cut to fit the screen.
fn domain_detail_lines(domain: &DomainView, attempts: bool, show_all: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let (max_reasons, max_checks) = (
        shown_entry_limit(MAX_REASONS, show_all),
        shown_entry_limit(MAX_CHECKS, show_all),
    );
    let reasons = domain.not_listed.iter();
    lines.extend(
        reasons
            .take(max_reasons)
            .map(|reason| format!("not listed: {reason}")),
    );
    push_omitted_count(&mut lines, "reasons", domain.not_listed.len(), max_reasons);
    let max_sources = shown_entry_limit(MAX_SOURCES, show_all || attempts);
    for source in domain.sources.iter().take(max_sources) {
        lines.push(source_line(source, show_all));
        if attempts {
            let all = source.last_attempt.iter().chain(&source.attempts);
            lines.extend(all.map(|attempt| format!("  {}", fetch_attempt_line(source, attempt))));
        }
    }
    push_omitted_count(&mut lines, "sources", domain.sources.len(), max_sources);
    // The newest check only; `--json` has the earlier ones.
    let latest = domain.checks.first().map(|check| check.at);
    let mut checks: Vec<&ProofCheck> = domain
        .checks
        .iter()
        .filter(|check| Some(check.at) == latest)
        .collect();
    // A found record is more informative than an absent one.
    checks.sort_by_key(|check| check.outcome == ProofOutcome::Absent);
    lines.extend(checks.iter().take(max_checks).map(|check| {
        format!(
            "proof check {}: {} at {}: {}",
            check.at.to_readable(),
            check.outcome,
            check.place,
            check.sentence()
        )
    }));
    push_omitted_count(&mut lines, "proof checks", checks.len(), max_checks);
    if domain.state != DomainState::Verified {
        let challenges = domain.challenges.iter();
        lines.extend(
            challenges.map(|challenge| format!("to publish: {}", describe_challenge(challenge))),
        );
        let none = domain.no_challenge.iter();
        lines.extend(none.map(|reason| format!("no challenge: {reason}")));
    }
    lines
}

/// Adds a line with the number of entries left out.
fn push_omitted_count(lines: &mut Vec<String>, noun: &str, total: usize, shown: usize) {
    if total > shown {
        let left = total - shown;
        lines.push(format!("and {left} more {noun}; --json has all of them"));
    }
}

/// Kind of a source, in words.
fn source_kind_text(kind: &OpenEnum<SourceKind>) -> &'static str {
    match kind.known_value() {
        Some(SourceKind::Ard | SourceKind::AiCatalog) => "catalog",
        Some(SourceKind::Entry) => "source in a catalog",
        _ => "source",
    }
}

/// A source with its state and statistics, in one line.
fn source_line(source: &SourceView, show_all: bool) -> String {
    if source.state == SourceState::Recorded {
        return format!(
            "{} {}: recorded; its content is shown once it has a listed agent that you may see",
            source_kind_text(&source.kind),
            source.url
        );
    }
    let due = source.next_due.map_or_else(
        || "no next fetch".to_owned(),
        |due| format!("next fetch at {}", due.to_readable()),
    );
    let nominated = match source.coverage.known_value() {
        Some(Coverage::Covered) | None => "",
        Some(Coverage::Nomination) => " (a nomination)",
    };
    let card = source.card_url.as_ref();
    let card = card.map(|url| format!(" (its card is at {url})"));
    let mut line = format!(
        "{} {}{}{nominated}: {}, {due}",
        source_kind_text(&source.kind),
        source.url,
        card.unwrap_or_default(),
        source.state
    );
    line.push_str(&credential_suffix(source));
    if let Some(limit) = &source.limit_met {
        line.push_str(&format!("; no agent was created from it: {limit}"));
    }
    let max_columns = shown_entry_limit(MAX_FAILURE_COLUMNS, show_all);
    // Most domains have no catalog, so an absent one is not a failure.
    let attempts: Vec<&AttemptView> = source.last_attempt.iter().chain(&source.attempts).collect();
    if source.state != SourceState::Absent && !attempts.is_empty() {
        let failures = || attempts.iter().filter(|one| has_fetch_failed(one));
        line.push_str(&format!(
            "; {1} of the last {0} attempts failed",
            attempts.len(),
            failures().count()
        ));
        if let Some(last) = failures().next() {
            let detail = terminal::escape_and_truncate(&last.detail, max_columns);
            line.push_str(&format!(
                ", the latest at {}: {}{}, {detail}",
                last.at.to_readable(),
                last.outcome,
                http_status_suffix(last)
            ));
        }
    }
    if let Some(read) = attempts.iter().find(|attempt| attempt.outcome == "catalog") {
        let detail = terminal::escape_and_truncate(&read.detail, max_columns);
        line.push_str(&format!("; {detail}"));
    }
    if let Some(uptime) = source.uptime_sentence() {
        line.push_str(&format!("; {uptime}"));
    }
    line.push_str(&cache_header_suffix(source));
    line
}

/// Kind of the credential of a source, as a part of its line.
fn credential_suffix(source: &SourceView) -> String {
    let credential = source.credential.as_ref();
    let suffix = credential.map(|one| format!("; fetched with a credential ({})", one.kind));
    suffix.unwrap_or_default()
}

/// Caching headers of a source, as the end of its line.
fn cache_header_suffix(source: &SourceView) -> String {
    let mut line = String::new();
    let validators: Vec<&str> = source
        .validators
        .iter()
        .flat_map(|known| [(known.etag, "ETag"), (known.last_modified, "Last-Modified")])
        .filter_map(|(known, name)| known.then_some(name))
        .collect();
    if !validators.is_empty() {
        line.push_str(&format!("; sends {}", validators.join(" and ")));
    }
    if let Some(seconds) = source.max_age {
        line.push_str(&format!("; fresh for {seconds} s"));
    }
    if let Some(vary) = &source.vary {
        line.push_str(&format!("; varies by {vary}"));
    }
    line
}

/// Whether an attempt returned neither content nor 304.
fn has_fetch_failed(attempt: &AttemptView) -> bool {
    !matches!(
        attempt.outcome.as_str(),
        "card" | "catalog" | "not_modified"
    )
}

fn http_status_suffix(attempt: &AttemptView) -> String {
    let status = attempt.status.map(|status| format!(" {status}"));
    status.unwrap_or_default()
}

fn fetch_attempt_line(source: &SourceView, attempt: &AttemptView) -> String {
    let address = attempt.address.as_ref();
    let address = address.map(|address| format!(" from {address}"));
    let cache = attempt.cache.as_ref().map(|cache| format!(" ({cache})"));
    let other_url = (attempt.url != source.url).then(|| format!(" at {}", attempt.url));
    format!(
        "{} {}{}{}{}{} in {} ms: {}",
        attempt.at.to_readable(),
        attempt.outcome,
        http_status_suffix(attempt),
        cache.unwrap_or_default(),
        address.unwrap_or_default(),
        other_url.unwrap_or_default(),
        attempt.elapsed_ms,
        attempt.detail
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use a2a_registry_domain::ownership::Method;

    use super::*;
    use a2a_registry_api::{Challenge, KnownValidators, OwnerVouch, SourceDay};
    use a2a_registry_domain::timestamp::Timestamp;

    /// Lines of a screen.
    const SCREEN: usize = 40;

    fn at(second: i64) -> Timestamp {
        Timestamp(second * 1_000_000)
    }

    fn attempt(second: i64, outcome: &str) -> AttemptView {
        AttemptView {
            at: at(second),
            outcome: outcome.into(),
            status: None,
            cache: (outcome == "not_modified").then(|| "revalidated".into()),
            elapsed_ms: 7,
            address: None,
            detail: "so it was".into(),
            url: "https://a.example/card.json".into(),
        }
    }

    #[test]
    fn a_state_of_a_newer_registry_is_shown_as_it_is() {
        let mut newer = source(Vec::new());
        newer.state = OpenEnum::from_text("moonlit".into());
        newer.kind = OpenEnum::from_text("moon".into());
        let line = source_line(&newer, false);
        assert!(
            line.starts_with("source https://a.example/card.json: moonlit"),
            "{line}"
        );
    }

    fn source(attempts: Vec<AttemptView>) -> SourceView {
        let mut attempts = attempts.into_iter();
        SourceView {
            id: "7".into(),
            url: "https://a.example/card.json".into(),
            kind: SourceKind::Url.into(),
            state: SourceState::Stale.into(),
            agent: None,
            coverage: Coverage::Covered.into(),
            own: true,
            limit_met: None,
            card_url: None,
            credential: None,
            last_attempt: attempts.next(),
            attempts: attempts.collect(),
            next_due: None,
            validators: None,
            max_age: None,
            vary: None,
            days: Vec::new(),
        }
    }

    fn domain(sources: Vec<SourceView>) -> DomainView {
        DomainView {
            domain: "a.example".into(),
            state: DomainState::Unverified.into(),
            generation: 3,
            proofs: Vec::new(),
            owner: None,
            owner_vouch: None,
            endpoint_vouch: None,
            endpoint_checks_off: false,
            contact: None,
            known_by: None,
            keys: Vec::new(),
            no_challenge: None,
            challenges: Vec::new(),
            checks: Vec::new(),
            next_check: Some(at(60)),
            sources,
            agents: Vec::new(),
            complete: true,
            not_listed: Vec::new(),
            created_at: at(0),
        }
    }

    #[test]
    fn a_source_is_one_line_and_its_attempts_follow_where_they_are_asked_for() {
        let mut one = source(vec![
            attempt(4, "not_modified"),
            attempt(3, "timeout"),
            attempt(2, "not_found"),
            attempt(1, "card"),
        ]);
        one.attempts[1].url = "https://a.example/other.json".into();
        let line = "source https://a.example/card.json: stale, no next fetch; \
                    2 of the last 4 attempts failed, the latest at 1970-01-01 00:00:03 UTC: timeout, so it was";
        assert_eq!(
            domain_detail_lines(&domain(vec![one.clone()]), false, false),
            [line]
        );
        assert_eq!(
            domain_detail_lines(&domain(vec![one]), true, false),
            [
                line,
                "  1970-01-01 00:00:04 UTC not_modified (revalidated) in 7 ms: so it was",
                "  1970-01-01 00:00:03 UTC timeout in 7 ms: so it was",
                "  1970-01-01 00:00:02 UTC not_found at https://a.example/other.json in 7 ms: so it was",
                "  1970-01-01 00:00:01 UTC card in 7 ms: so it was",
            ]
        );
    }

    #[test]
    fn a_source_says_how_it_fared_for_days_and_what_it_sends() {
        let mut one = source(vec![attempt(1, "card")]);
        one.validators = Some(KnownValidators {
            etag: true,
            last_modified: true,
        });
        one.max_age = Some(600);
        one.vary = Some("accept".into());
        one.days.push(SourceDay {
            day: "2026-11-20".into(),
            looks: 8,
            good: 7,
        });
        assert_eq!(
            source_line(&one, false),
            "source https://a.example/card.json: stale, no next fetch; 0 of the last 1 attempts failed; \
             7 of 8 fetches succeeded in the last 90 days; sends ETag and Last-Modified; fresh for 600 s; varies by accept"
        );
    }

    #[test]
    fn a_catalog_that_is_not_there_has_not_failed() {
        let mut one = source(vec![attempt(1, "not_found")]);
        one.kind = SourceKind::Ard.into();
        one.state = SourceState::Absent.into();
        assert_eq!(
            source_line(&one, false),
            "catalog https://a.example/card.json: absent, no next fetch"
        );
    }

    #[test]
    fn an_owner_that_an_admin_vouches_for_is_told_as_such() {
        let mut view = domain(Vec::new());
        view.owner = Some("acme".into());
        let owner_field = |view: &DomainView| {
            domain_fields(view, false)
                .into_iter()
                .find(|fact| fact.0 == "owner")
        };
        assert_eq!(owner_field(&view), Some(("owner", "acme".into())));
        view.owner_vouch = Some(OwnerVouch {
            since: at(0),
            until: at(60),
            by: Some("admin".into()),
            reason: Some("ticket 7".into()),
        });
        let words =
            "acme (vouched for by an admin until 1970-01-01 00:01:00 UTC, not proved: ticket 7)";
        assert_eq!(owner_field(&view), Some(("owner", words.into())));
    }

    #[test]
    fn generation_and_next_check_are_told() {
        let told = domain_fields(&domain(Vec::new()), false);
        assert!(told.contains(&("generation", "3".into())), "{told:?}");
        let next = ("next check", "1970-01-01 00:01:00 UTC".to_owned());
        assert!(told.contains(&next), "{told:?}");
    }

    #[test]
    fn a_domain_with_three_sources_and_many_attempts_fits_on_one_screen() {
        let many = || source((0..20).rev().map(|at| attempt(at, "timeout")).collect());
        let view = domain(vec![many(), many(), many()]);
        let shown =
            domain_fields(&view, false).len() + domain_detail_lines(&view, false, false).len();
        assert!(shown <= SCREEN, "{shown}");
        let told = domain_detail_lines(&view, true, false);
        let of_attempts: Vec<&String> = told.iter().filter(|line| line.starts_with(' ')).collect();
        assert_eq!(of_attempts.len(), 60);
        assert!(of_attempts[..20].is_sorted_by(|newer, older| newer > older));
    }

    #[test]
    fn whatever_a_domain_has_many_of_it_fits_on_one_screen() {
        let mut view = domain((0..100).map(|_| source(Vec::new())).collect());
        view.not_listed = vec!["it waits".into(); 60];
        view.agents = (0..100).map(Uuid::from_u128).collect();
        let check = |outcome: ProofOutcome| ProofCheck {
            at: at(9),
            method: Method::Dns.into(),
            place: "_a2a-registry.a.example".into(),
            outcome: outcome.into(),
            detail: "so it was".into(),
            wanted: Some("token".into()),
            found: vec!["hello".into()],
            aliased: false,
        };
        view.checks = vec![check(ProofOutcome::Absent); 20];
        view.checks.push(check(ProofOutcome::Wrong));
        let challenge = Challenge {
            method: Method::Dns.into(),
            name: None,
            url: None,
            value: None,
            body: None,
            expires: None,
        };
        view.challenges = vec![challenge; 3];
        let told = domain_detail_lines(&view, false, false);
        let shown = domain_fields(&view, false).len() + told.len();
        assert!(shown <= SCREEN, "{shown}: {told:#?}");
        for left in ["54 more reasons", "90 more sources", "15 more proof checks"] {
            assert!(told.iter().any(|line| line.contains(left)), "{left}");
        }
        let piped = domain_detail_lines(&view, false, true);
        assert!(
            !piped.iter().any(|line| line.contains(" more ")),
            "{piped:#?}"
        );
        assert!(piped.len() > 180, "{piped:#?}");
        let first = told.iter().find(|line| line.starts_with("proof check"));
        assert!(
            first.is_some_and(|line| line.contains("wrong at")),
            "{told:#?}"
        );
    }
}
