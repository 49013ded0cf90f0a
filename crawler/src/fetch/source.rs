//! Fetches a source: a card or a catalog.

use a2a_card::{ParseError, Parsed};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use time::OffsetDateTime;
use url::Url;

use super::catalog::Reading;
use super::freshness::{freshness, retry_after};
use super::sentence::{MAX_DETAIL, bounded};
use super::{Fetched, Fetcher, GetOptions, HttpResponse, KeySetRules};
use crate::{
    Attempt, AttemptOutcome, FetchedCard, Freshness, Slot, SourceOutcome, SourceTask,
    SourceVerdict, Validators,
};

/// Path of cards since protocol 0.3.
pub const AGENT_CARD_PATH: &str = "/.well-known/agent-card.json";
/// Path of older cards.
pub const AGENT_PATH: &str = "/.well-known/agent.json";

/// The well-known path under a base URL, where SDKs look for the card of one agent of several on a host. `None` for a URL
/// with a query, and for one that is such a path itself.
pub fn card_under(base: &Url) -> Option<Url> {
    let path = base.path();
    if base.query().is_some() || path.ends_with(AGENT_CARD_PATH) || path.ends_with(AGENT_PATH) {
        return None;
    }
    let mut url = base.clone();
    url.set_path(&format!("{}{AGENT_CARD_PATH}", path.trim_end_matches('/')));
    url.set_fragment(None);
    Some(url)
}

impl Fetcher {
    /// Fetches one source: the card at one URL or at both well-known paths, or a catalog. Always makes an attempt,
    /// and never returns an error: failures are in the attempts and the verdict.
    ///
    /// Of the well-known paths, `agent.json` is fetched after any response to the first without a card, except 304 and
    /// those by which a server says that it is overloaded. If neither brings a card, the more telling failure counts.
    ///
    /// Key sets come from the card's own origin only; [`fetch_source_with`](Self::fetch_source_with) takes rules.
    pub async fn fetch_source(&self, task: &SourceTask) -> SourceOutcome {
        self.fetch_source_with(task, &KeySetRules::default()).await
    }

    /// Fetches one source like [`fetch_source`](Self::fetch_source), with the key sets that `rules` admit.
    pub async fn fetch_source_with(
        &self,
        task: &SourceTask,
        rules: &KeySetRules<'_>,
    ) -> SourceOutcome {
        let validators = task.validators.as_ref();
        let (attempts, verdict) = match &task.slot {
            Slot::Url { url } => {
                let (attempt, verdict) = self.fetch_card_with(url, validators, rules).await;
                (vec![attempt], verdict)
            }
            Slot::Registered { url, may_be_base } => {
                self.fetch_registered(url, *may_be_base, validators, rules)
                    .await
            }
            Slot::WellKnown { origin } => self.fetch_well_known(origin, validators, rules).await,
            Slot::Catalog { url, registries } => {
                self.fetch_catalog(url, validators, *registries).await
            }
            Slot::Inline { url, identifier } => {
                let (attempt, verdict) = self
                    .fetch_inline_card(url, identifier, validators, rules)
                    .await;
                (vec![attempt], verdict)
            }
        };
        SourceOutcome {
            source_key: task.source_key,
            attempts,
            verdict,
        }
    }

    async fn fetch_well_known(
        &self,
        origin: &Url,
        validators: Option<&Validators>,
        rules: &KeySetRules<'_>,
    ) -> (Vec<Attempt>, SourceVerdict) {
        let (mut first, verdict) = self
            .fetch_card_with(&well_known(origin, AGENT_CARD_PATH), validators, rules)
            .await;
        if let Some(hint) = self.plain_http_hint(origin, first.outcome) {
            first.detail = bounded(&format!("{}; {hint}", first.detail), MAX_DETAIL);
        }
        if !may_lie_elsewhere(&first, &verdict) {
            return (vec![first], verdict);
        }
        let (second, other) = self
            .fetch_card_with(&well_known(origin, AGENT_PATH), validators, rules)
            .await;
        (vec![first, second], deciding(&verdict, other))
    }

    /// Fetches a registered URL of a card or a catalog, and the well-known path under it if it responds with neither.
    async fn fetch_registered(
        &self,
        url: &Url,
        may_be_base: bool,
        validators: Option<&Validators>,
        rules: &KeySetRules<'_>,
    ) -> (Vec<Attempt>, SourceVerdict) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let options = GetOptions {
            validators,
            ..GetOptions::default()
        };
        let fetched = self.get(url, &options).await;
        let mut reading = Reading::new(self.guard(), url, false);
        let (first, mut verdict) = self.judge(
            fetched,
            validators,
            "card",
            // Nearly every registered URL is that of a card.
            |answer, asked, now| match a2a_card::parse(&answer.body) {
                Ok(parsed) => card_of(answer, parsed, asked, now),
                Err(error) => reading
                    .take(&answer, 0, asked, now)
                    .unwrap_or_else(|_| not_a_card(&answer, &error)),
            },
        );
        if let SourceVerdict::Fetched(card) = &mut verdict {
            card.key_sets = self.fetch_key_sets(url, &card.parsed.card, rules).await;
        }
        if let SourceVerdict::Catalog(catalog) = verdict {
            return self.fetch_nested(reading, first, catalog).await;
        }
        let under = card_under(url).filter(|_| may_be_base && may_lie_elsewhere(&first, &verdict));
        let Some(under) = under else {
            return (vec![first], verdict);
        };
        let (second, other) = self.fetch_card_with(&under, None, rules).await;
        (vec![first, second], deciding(&verdict, other))
    }

    /// A URL to register instead, if a bare `host:port`, which means https, probably speaks http.
    fn plain_http_hint(&self, origin: &Url, outcome: AttemptOutcome) -> Option<String> {
        let bare_port = origin.scheme() == "https" && origin.port().is_some();
        let mut plain = well_known(origin, AGENT_CARD_PATH);
        plain.set_scheme("http").ok()?;
        let admitted = self.guard().check_parsed(plain.clone()).is_ok();
        // A server that falls silent says nothing about what it speaks: it may be asleep, or slow.
        let answers_without_tls = outcome == AttemptOutcome::TlsInvalid;
        (bare_port && admitted && answers_without_tls)
            .then(|| format!("if it speaks http without TLS, register {plain}"))
    }

    /// Fetches one URL as a card; conditionally if the validators belong to this very URL.
    pub async fn fetch_card(
        &self,
        url: &Url,
        validators: Option<&Validators>,
    ) -> (Attempt, SourceVerdict) {
        self.fetch_card_with(url, validators, &KeySetRules::default())
            .await
    }

    /// Fetches one URL like [`fetch_card`](Self::fetch_card), with the key sets that `rules` admit.
    pub async fn fetch_card_with(
        &self,
        url: &Url,
        validators: Option<&Validators>,
        rules: &KeySetRules<'_>,
    ) -> (Attempt, SourceVerdict) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let options = GetOptions {
            validators,
            ..GetOptions::default()
        };
        let fetched = self.get(url, &options).await;
        let (attempt, mut verdict) = self.judge(fetched, validators, "card", read_card);
        if let SourceVerdict::Fetched(card) = &mut verdict {
            card.key_sets = self.fetch_key_sets(url, &card.parsed.card, rules).await;
        }
        (attempt, verdict)
    }

    /// The attempt and the verdict for a response. `what` names the expected document, which `read` reads from a 200.
    pub(super) fn judge(
        &self,
        fetched: Fetched,
        validators: Option<&Validators>,
        what: &str,
        read: impl FnOnce(HttpResponse, &str, OffsetDateTime) -> (SourceVerdict, String),
    ) -> (Attempt, SourceVerdict) {
        let mut attempt = Attempt {
            at: fetched.at,
            url: fetched.url.to_string(),
            outcome: AttemptOutcome::BadStatus,
            status: None,
            address: None,
            detail: String::new(),
            conditional: validators.is_some(),
            elapsed_ms: u32::try_from(fetched.elapsed.as_millis()).unwrap_or(u32::MAX),
        };
        let (judgement, detail) = match fetched.answer {
            Err(error) => {
                attempt.status = error.status;
                attempt.address = error.address;
                (failed(error.outcome), error.detail)
            }
            Ok(answer) => {
                attempt.status = Some(answer.status);
                attempt.address = answer.address;
                let moved = answer.url != fetched.url;
                let seen_at = answer.url.clone();
                let now = self.clock.now();
                let (judgement, mut detail) = match answer.status {
                    200 => read(answer, &attempt.url, now),
                    304 if validators.is_some() => {
                        let freshness = freshness(&answer.headers, &attempt.url, validators, now);
                        (
                            SourceVerdict::NotModified(freshness),
                            "not modified".to_owned(),
                        )
                    }
                    status => read_status(status, &answer.headers, what, now),
                };
                if moved {
                    detail = format!(
                        "{detail}, after a redirect to {}",
                        bounded(seen_at.as_str(), 120)
                    );
                }
                (judgement, detail)
            }
        };
        attempt.detail = bounded(&detail, MAX_DETAIL);
        attempt.outcome = match &judgement {
            SourceVerdict::Fetched(_) => AttemptOutcome::Card,
            SourceVerdict::Catalog(_) => AttemptOutcome::Catalog,
            SourceVerdict::NotModified(_) => AttemptOutcome::NotModified,
            SourceVerdict::Failed { outcome, .. } => *outcome,
        };
        (attempt, judgement)
    }
}

fn read_card(answer: HttpResponse, asked: &str, now: OffsetDateTime) -> (SourceVerdict, String) {
    match a2a_card::parse(&answer.body) {
        Ok(parsed) => card_of(answer, parsed, asked, now),
        Err(error) => not_a_card(&answer, &error),
    }
}

fn card_of(
    answer: HttpResponse,
    parsed: Parsed,
    asked: &str,
    now: OffsetDateTime,
) -> (SourceVerdict, String) {
    let name = bounded(&parsed.card.name, 80);
    let freshness: Freshness = freshness(&answer.headers, asked, None, now);
    let card = FetchedCard {
        url: answer.url.into(),
        bytes: answer.body,
        parsed,
        key_sets: Vec::new(),
        tls: answer.tls,
        freshness,
    };
    (
        SourceVerdict::Fetched(Box::new(card)),
        format!("the card of {name:?}"),
    )
}

fn not_a_card(answer: &HttpResponse, error: &ParseError) -> (SourceVerdict, String) {
    (
        failed(AttemptOutcome::NotACard),
        no_card(&answer.headers, &answer.body, error),
    )
}

fn no_card(headers: &HeaderMap, body: &[u8], error: &ParseError) -> String {
    let declared = headers.get(CONTENT_TYPE).is_some_and(|value| {
        value
            .as_bytes()
            .to_ascii_lowercase()
            .starts_with(b"text/html")
    });
    let markup = body.trim_ascii_start().first() == Some(&b'<');
    if body.trim_ascii().is_empty() {
        "the server responded with status 200 and an empty body instead of a card".to_owned()
    } else if declared || markup {
        "the server responded with status 200 and an HTML page instead of a card; serve the card's JSON here, or respond with 404"
            .to_owned()
    } else {
        format!("the server responded with status 200 and something that is not a card: {error}")
    }
}

fn read_status(
    status: u16,
    headers: &HeaderMap,
    what: &str,
    now: OffsetDateTime,
) -> (SourceVerdict, String) {
    let retry = retry_after(headers, now);
    let (outcome, hint) = match status {
        404 => (AttemptOutcome::NotFound, format!("no {what} at this URL")),
        410 => (AttemptOutcome::Gone, format!("the {what} has been removed")),
        401 | 403 => (
            AttemptOutcome::Forbidden,
            format!("make the {what} readable without credentials"),
        ),
        429 => (
            AttemptOutcome::Throttled,
            "the registry will fetch it less often".to_owned(),
        ),
        503 if retry.is_some() => (
            AttemptOutcome::Throttled,
            "the registry will try again later".to_owned(),
        ),
        500..=599 => (AttemptOutcome::BadStatus, "the server failed".to_owned()),
        _ => (
            AttemptOutcome::BadStatus,
            format!("serve the {what} with status 200"),
        ),
    };
    let verdict = SourceVerdict::Failed {
        outcome,
        retry_after: retry,
    };
    (
        verdict,
        format!("the server responded with status {status}: {hint}"),
    )
}

pub(super) const fn failed(outcome: AttemptOutcome) -> SourceVerdict {
    SourceVerdict::Failed {
        outcome,
        retry_after: None,
    }
}

fn well_known(origin: &Url, path: &str) -> Url {
    let mut url = origin.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Whether the card may be at the other URL: after a response without a card, unless the server wants a rest.
const fn may_lie_elsewhere(attempt: &Attempt, verdict: &SourceVerdict) -> bool {
    let SourceVerdict::Failed {
        outcome,
        retry_after: None,
    } = verdict
    else {
        return false;
    };
    // A connection that breaks within the body is no response, and bad TLS behind a redirect must not be passed over.
    let is_response = !matches!(
        outcome,
        AttemptOutcome::Timeout | AttemptOutcome::Unreachable | AttemptOutcome::TlsInvalid
    );
    is_response
        && matches!(attempt.status, Some(status) if !matches!(status, 304 | 429 | 502..=504))
}

/// The result of two URLs without a card. A pause that the second response asks for is obeyed, whichever counts.
fn deciding(first: &SourceVerdict, second: SourceVerdict) -> SourceVerdict {
    match (first, second) {
        (
            SourceVerdict::Failed { outcome: one, .. },
            SourceVerdict::Failed {
                outcome: other,
                retry_after,
            },
        ) => SourceVerdict::Failed {
            outcome: if first_counts(*one, other) {
                *one
            } else {
                other
            },
            retry_after,
        },
        (_, second) => second,
    }
}

/// Which of two failures counts for liveness and is shown as the reason: the one that says more than that nothing is
/// there, and never one that ends an agent sooner than the first alone would have (docs/model.md#liveness).
const fn first_counts(first: AttemptOutcome, second: AttemptOutcome) -> bool {
    use AttemptOutcome::{Gone, NotACard, NotFound, Throttled, TlsInvalid};
    match (first, second) {
        (NotACard, _) | (_, NotFound | Gone | TlsInvalid) => true,
        (NotFound | Gone, _) | (_, NotACard | Throttled) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;
    use crate::liveness::{History, Liveness};

    /// When an agent is gone whose fetches all fail so, within a month.
    fn gone_after(outcome: AttemptOutcome, every: Duration) -> Option<Duration> {
        let (start, mut history) = (OffsetDateTime::UNIX_EPOCH, History::default());
        let times = (0_i32..).map(|number| every * number);
        let mut times = times.take_while(|after| *after < Duration::days(30));
        times.find(|after| {
            history = history.after(outcome, start + *after);
            history.judge(start + *after).0 == Liveness::Gone
        })
    }

    #[test]
    fn a_second_request_ends_no_agent_sooner_than_the_first_alone() {
        use AttemptOutcome::{Card, Catalog, NotACatalog, NotModified};
        let failures = || {
            let all = AttemptOutcome::ALL.into_iter();
            all.filter(|outcome| !matches!(outcome, Card | Catalog | NotACatalog | NotModified))
        };
        let never = Duration::days(30);
        for every in [Duration::hours(1), Duration::hours(24)] {
            for (first, second) in failures().flat_map(|one| failures().map(move |two| (one, two)))
            {
                let counts = if first_counts(first, second) {
                    first
                } else {
                    second
                };
                assert!(
                    gone_after(counts, every).unwrap_or(never)
                        >= gone_after(first, every).unwrap_or(never),
                    "{first:?} and then {second:?}"
                );
            }
        }
    }
}
