//! Fetches a source: a card or a catalog.

use a2a_card::{ParseError, ParsedCard};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use time::OffsetDateTime;
use url::Url;

use super::catalog::CatalogFetch;
use super::freshness::{parse_freshness, parse_retry_after};
use super::{FetchRecord, Fetcher, GetOptions, HttpResponse, KeySetRules};
use crate::foreign_text::{MAX_DETAIL, sanitize_text};
use crate::{
    AttemptOutcome, FetchAttempt, FetchTarget, FetchedCard, Freshness, SourceOutcome, SourceResult,
    SourceTask, Validators,
};

/// Well-known path of cards since protocol 0.3.
pub const AGENT_CARD_PATH: &str = "/.well-known/agent-card.json";
/// Well-known path of older cards.
pub const LEGACY_AGENT_CARD_PATH: &str = "/.well-known/agent.json";

/// The well-known path below a base URL, where SDKs look for the card if a host has several agents. `None` for a URL
/// with a query, and for a URL that already is such a path.
pub fn card_url_under(base: &Url) -> Option<Url> {
    let path = base.path();
    if base.query().is_some()
        || path.ends_with(AGENT_CARD_PATH)
        || path.ends_with(LEGACY_AGENT_CARD_PATH)
    {
        return None;
    }
    let mut url = base.clone();
    url.set_path(&format!("{}{AGENT_CARD_PATH}", path.trim_end_matches('/')));
    url.set_fragment(None);
    Some(url)
}

impl Fetcher {
    /// Fetches one source: the card at one URL or at both well-known paths, or a catalog. Always makes an attempt, and
    /// never returns an error: failures are in the attempts and the result.
    ///
    /// Of the well-known paths, `agent.json` is fetched if the first response has no card, unless it is a 304 or says
    /// that the server is overloaded. If neither path has a card, the more informative failure counts.
    ///
    /// Key sets come from the card's own origin only; [`fetch_source_and_keys`](Self::fetch_source_and_keys)
    /// allows others.
    pub async fn fetch_source(&self, task: &SourceTask) -> SourceOutcome {
        self.fetch_source_and_keys(task, &KeySetRules::default())
            .await
    }

    /// Fetches one source like [`fetch_source`](Self::fetch_source), with the key sets that `rules` allow.
    pub async fn fetch_source_and_keys(
        &self,
        task: &SourceTask,
        rules: &KeySetRules<'_>,
    ) -> SourceOutcome {
        match &task.credential {
            Some(credential) => {
                self.fetch_source_with_credential(task, credential, rules)
                    .await
            }
            None => self.fetch_target(task, rules).await,
        }
    }

    pub(super) async fn fetch_target(
        &self,
        task: &SourceTask,
        rules: &KeySetRules<'_>,
    ) -> SourceOutcome {
        let validators = task.validators.as_ref();
        let (attempts, result) = match &task.target {
            FetchTarget::CardUrl { url } => {
                let (attempt, verdict) = self.fetch_card_and_keys(url, validators, rules).await;
                (vec![attempt], verdict)
            }
            FetchTarget::RegisteredUrl { url, may_be_base } => {
                self.fetch_registered_url(url, *may_be_base, validators, rules)
                    .await
            }
            FetchTarget::WellKnown { origin } => {
                self.fetch_well_known_card(origin, validators, rules).await
            }
            FetchTarget::Catalog {
                url,
                read_registries: registries,
            } => self.fetch_catalog(url, validators, *registries).await,
            FetchTarget::InlineCard { url, identifier } => {
                let (attempt, verdict) = self
                    .fetch_inline_card(url, identifier, validators, rules)
                    .await;
                (vec![attempt], verdict)
            }
        };
        SourceOutcome {
            source_key: task.source_key,
            attempts,
            result,
        }
    }

    async fn fetch_well_known_card(
        &self,
        origin: &Url,
        validators: Option<&Validators>,
        rules: &KeySetRules<'_>,
    ) -> (Vec<FetchAttempt>, SourceResult) {
        let (mut first, result) = self
            .fetch_card_and_keys(&well_known_url(origin, AGENT_CARD_PATH), validators, rules)
            .await;
        if let Some(hint) = self.plain_http_hint(origin, first.outcome) {
            first.detail = sanitize_text(&format!("{}; {hint}", first.detail), MAX_DETAIL);
        }
        if !should_try_other_url(&first, &result) {
            return (vec![first], result);
        }
        let (retry, retry_result) = self
            .fetch_card_and_keys(
                &well_known_url(origin, LEGACY_AGENT_CARD_PATH),
                validators,
                rules,
            )
            .await;
        (
            vec![first, retry],
            combine_failed_results(&result, retry_result),
        )
    }

    /// Fetches a registered URL as a card or a catalog, and the well-known path below it if the response is neither.
    async fn fetch_registered_url(
        &self,
        url: &Url,
        may_be_base: bool,
        validators: Option<&Validators>,
        rules: &KeySetRules<'_>,
    ) -> (Vec<FetchAttempt>, SourceResult) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let options = GetOptions {
            validators,
            ..GetOptions::default()
        };
        let record = self.get(url, &options).await;
        let mut catalog_fetch = CatalogFetch::new(self.guard(), url, false);
        let (first, mut result) = self.interpret_response(
            record,
            validators,
            "card",
            // Almost every registered URL is that of a card.
            |response, requested_url, now| match a2a_card::parse_card(&response.body) {
                Ok(parsed) => fetched_card_result(response, parsed, requested_url, now),
                Err(error) => catalog_fetch
                    .add_response(&response, 0, requested_url, now)
                    .unwrap_or_else(|_| not_a_card_result(&response, &error)),
            },
        );
        if let SourceResult::Fetched(card) = &mut result {
            card.key_sets = self.fetch_key_sets(url, &card.parsed.card, rules).await;
        }
        if let SourceResult::Catalog(catalog) = result {
            return self
                .fetch_nested_catalogs(catalog_fetch, first, catalog)
                .await;
        }
        let url_under_base =
            card_url_under(url).filter(|_| may_be_base && should_try_other_url(&first, &result));
        let Some(url_under_base) = url_under_base else {
            return (vec![first], result);
        };
        let (second, retry_result) = self.fetch_card_and_keys(&url_under_base, None, rules).await;
        (
            vec![first, second],
            combine_failed_results(&result, retry_result),
        )
    }

    /// Hint to register another URL, if a bare `host:port`, which means https, probably uses plain http.
    fn plain_http_hint(&self, origin: &Url, outcome: AttemptOutcome) -> Option<String> {
        let is_bare_port = origin.scheme() == "https" && origin.port().is_some();
        let mut http_url = well_known_url(origin, AGENT_CARD_PATH);
        http_url.set_scheme("http").ok()?;
        let admitted = self.guard().check_parsed_url(http_url.clone()).is_ok();
        // A timeout says nothing about the protocol of the server, which may be asleep or slow.
        let answers_without_tls = outcome == AttemptOutcome::TlsInvalid;
        (is_bare_port && admitted && answers_without_tls)
            .then(|| format!("if the server uses http without TLS, register {http_url}"))
    }

    /// Fetches one URL as a card; conditionally if the validators belong to exactly this URL.
    pub async fn fetch_card(
        &self,
        url: &Url,
        validators: Option<&Validators>,
    ) -> (FetchAttempt, SourceResult) {
        self.fetch_card_and_keys(url, validators, &KeySetRules::default())
            .await
    }

    /// Fetches one URL like [`fetch_card`](Self::fetch_card), with the key sets that `rules` allow.
    pub async fn fetch_card_and_keys(
        &self,
        url: &Url,
        validators: Option<&Validators>,
        rules: &KeySetRules<'_>,
    ) -> (FetchAttempt, SourceResult) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let options = GetOptions {
            validators,
            ..GetOptions::default()
        };
        let record = self.get(url, &options).await;
        let (attempt, mut result) =
            self.interpret_response(record, validators, "card", interpret_card_body);
        if let SourceResult::Fetched(card) = &mut result {
            card.key_sets = self.fetch_key_sets(url, &card.parsed.card, rules).await;
        }
        (attempt, result)
    }

    /// The attempt and the result for a response. `document_name` names the expected document, which `interpret_body`
    /// reads from a 200.
    pub(super) fn interpret_response(
        &self,
        record: FetchRecord,
        validators: Option<&Validators>,
        document_name: &str,
        interpret_body: impl FnOnce(HttpResponse, &str, OffsetDateTime) -> (SourceResult, String),
    ) -> (FetchAttempt, SourceResult) {
        let mut attempt = FetchAttempt {
            started_at: record.started_at,
            url: record.url.to_string(),
            outcome: AttemptOutcome::BadStatus,
            status: None,
            address: None,
            detail: String::new(),
            is_conditional: validators.is_some(),
            elapsed_ms: u32::try_from(record.elapsed.as_millis()).unwrap_or(u32::MAX),
        };
        let (result, detail) = match record.result {
            Err(error) => {
                attempt.status = error.status;
                attempt.address = error.address;
                (failed_source_result(error.outcome), error.detail)
            }
            Ok(response) => {
                attempt.status = Some(response.status);
                attempt.address = response.address;
                let was_redirected = response.url != record.url;
                let final_url = response.url.clone();
                let now = self.clock.now();
                let (result, mut detail) = match response.status {
                    200 => interpret_body(response, &attempt.url, now),
                    304 if validators.is_some() => {
                        let freshness =
                            parse_freshness(&response.headers, &attempt.url, validators, now);
                        (
                            SourceResult::NotModified(freshness),
                            "not modified".to_owned(),
                        )
                    }
                    401 | 403 if self.credential.is_some() => (
                        failed_source_result(AttemptOutcome::Forbidden),
                        describe_refused_credential(response.status, was_redirected),
                    ),
                    status => interpret_status(status, &response.headers, document_name, now),
                };
                if was_redirected {
                    detail = format!(
                        "{detail}, after a redirect to {}",
                        sanitize_text(final_url.as_str(), 120)
                    );
                }
                (result, detail)
            }
        };
        attempt.detail = sanitize_text(&detail, MAX_DETAIL);
        attempt.outcome = match &result {
            SourceResult::Fetched(_) => AttemptOutcome::Card,
            SourceResult::Catalog(_) => AttemptOutcome::Catalog,
            SourceResult::NotModified(_) => AttemptOutcome::NotModified,
            SourceResult::Failed { outcome, .. } => *outcome,
        };
        (attempt, result)
    }
}

fn interpret_card_body(
    response: HttpResponse,
    requested_url: &str,
    now: OffsetDateTime,
) -> (SourceResult, String) {
    match a2a_card::parse_card(&response.body) {
        Ok(parsed) => fetched_card_result(response, parsed, requested_url, now),
        Err(error) => not_a_card_result(&response, &error),
    }
}

fn fetched_card_result(
    response: HttpResponse,
    parsed: ParsedCard,
    requested_url: &str,
    now: OffsetDateTime,
) -> (SourceResult, String) {
    let name = sanitize_text(&parsed.card.name, 80);
    let freshness: Freshness = parse_freshness(&response.headers, requested_url, None, now);
    let card = FetchedCard {
        url: response.url.into(),
        bytes: response.body,
        parsed,
        key_sets: Vec::new(),
        over_tls: response.over_tls,
        with_credential: false,
        freshness,
    };
    (
        SourceResult::Fetched(Box::new(card)),
        format!("the card of {name:?}"),
    )
}

fn not_a_card_result(response: &HttpResponse, error: &ParseError) -> (SourceResult, String) {
    (
        failed_source_result(AttemptOutcome::NotACard),
        describe_non_card(&response.headers, &response.body, error),
    )
}

fn describe_non_card(headers: &HeaderMap, body: &[u8], error: &ParseError) -> String {
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

fn describe_refused_credential(status: u16, was_redirected: bool) -> String {
    let hint = match was_redirected {
        true => {
            "a credential is not sent after a redirect; register the card at the URL that it leads to"
        }
        false => "it refuses the credential of this source; set a valid one",
    };
    format!("the server responded with status {status}: {hint}")
}

fn interpret_status(
    status: u16,
    headers: &HeaderMap,
    document_name: &str,
    now: OffsetDateTime,
) -> (SourceResult, String) {
    let retry = parse_retry_after(headers, now);
    let (outcome, hint) = match status {
        404 => (
            AttemptOutcome::NotFound,
            format!("no {document_name} at this URL"),
        ),
        410 => (
            AttemptOutcome::Gone,
            format!("the {document_name} has been removed"),
        ),
        401 | 403 => (
            AttemptOutcome::Forbidden,
            format!(
                "make the {document_name} readable without credentials, or set a credential for this source"
            ),
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
            format!("serve the {document_name} with status 200"),
        ),
    };
    let result = SourceResult::Failed {
        outcome,
        retry_after: retry,
    };
    (
        result,
        format!("the server responded with status {status}: {hint}"),
    )
}

pub(super) const fn failed_source_result(outcome: AttemptOutcome) -> SourceResult {
    SourceResult::Failed {
        outcome,
        retry_after: None,
    }
}

fn well_known_url(origin: &Url, path: &str) -> Url {
    let mut url = origin.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Whether the card may be at the other URL: after a response without a card, unless the server wants no further
/// requests.
const fn should_try_other_url(attempt: &FetchAttempt, result: &SourceResult) -> bool {
    let SourceResult::Failed {
        outcome,
        retry_after: None,
    } = result
    else {
        return false;
    };
    // A connection that breaks within the body is not a response, and bad TLS behind a redirect must not be ignored.
    let is_response = !matches!(
        outcome,
        AttemptOutcome::Timeout | AttemptOutcome::Unreachable | AttemptOutcome::TlsInvalid
    );
    is_response
        && matches!(attempt.status, Some(status) if !matches!(status, 304 | 429 | 502..=504))
}

/// Combines the results of two URLs without a card. A pause that the second response requests is kept, whichever
/// result counts.
fn combine_failed_results(first: &SourceResult, second: SourceResult) -> SourceResult {
    match (first, second) {
        (
            SourceResult::Failed {
                outcome: first_outcome,
                ..
            },
            SourceResult::Failed {
                outcome: second_outcome,
                retry_after,
            },
        ) => SourceResult::Failed {
            outcome: if first_failure_decides(*first_outcome, second_outcome) {
                *first_outcome
            } else {
                second_outcome
            },
            retry_after,
        },
        (_, second) => second,
    }
}

/// Whether the first of two failures determines liveness and is displayed as the reason. The failure that says more
/// than "not found" decides, but never one that ends an agent sooner than the first alone would have
/// (docs/publish/not-listed.md#the-card-cannot-be-fetched).
const fn first_failure_decides(first: AttemptOutcome, second: AttemptOutcome) -> bool {
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
    use crate::liveness::{FailureHistory, Liveness};

    /// Time until an agent is gone if all its fetches fail with this outcome, within a month.
    fn gone_after(outcome: AttemptOutcome, every: Duration) -> Option<Duration> {
        let (start, mut history) = (OffsetDateTime::UNIX_EPOCH, FailureHistory::default());
        let times = (0_i32..).map(|number| every * number);
        let mut times = times.take_while(|after| *after < Duration::days(30));
        times.find(|after| {
            history = history.with_fetch(outcome, start + *after);
            history.liveness_at(start + *after).0 == Liveness::Gone
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
                let counts = if first_failure_decides(first, second) {
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
