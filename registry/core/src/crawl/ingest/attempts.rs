//! Attempts of a fetch, in the form shown to the owner.

use a2a_crawler::foreign_text::{MAX_SUMMARY, sanitize_text};
use a2a_crawler::{FetchAttempt, SourceOutcome, SourceResult};

/// The attempts of a fetch with their details for the owner, in the order in which they are stored: the last one
/// represents the fetch if only one is shown.
///
/// For a card at the older well-known path, the response of the newer path is not a failure: it is mentioned in the
/// detail of the successful attempt. If two URLs have no card, the decisive one is last, and mentions both.
pub fn attempts_with_details(result: &SourceOutcome) -> Vec<(&FetchAttempt, String)> {
    let one = |attempt: &FetchAttempt| attempt.detail.clone();
    match (result.attempts.as_slice(), &result.result) {
        ([first, good], SourceResult::Fetched(_) | SourceResult::NotModified(_)) => {
            let detail = format!("{}; at {}: {}", good.detail, first.url, first.detail);
            vec![(good, sanitize_text(&detail, MAX_SUMMARY))]
        }
        ([first, second], SourceResult::Failed { outcome, .. }) => {
            let (deciding, other) = if first.outcome == *outcome {
                (first, second)
            } else {
                (second, first)
            };
            let placed = |attempt: &FetchAttempt| format!("{}, at {}", attempt.detail, attempt.url);
            let detail = format!("{}; {}", placed(deciding), placed(other));
            vec![
                (other, one(other)),
                (deciding, sanitize_text(&detail, MAX_SUMMARY)),
            ]
        }
        (attempts, _) => attempts.iter().map(|each| (each, one(each))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use a2a_crawler::AttemptOutcome::{self, Forbidden, NotACard, NotFound};
    use a2a_crawler::foreign_text::MAX_DETAIL;
    use time::OffsetDateTime;

    use super::*;

    fn attempt(url: &str, outcome: AttemptOutcome, detail: &str) -> FetchAttempt {
        FetchAttempt {
            started_at: OffsetDateTime::UNIX_EPOCH,
            url: url.into(),
            outcome,
            status: None,
            address: None,
            detail: detail.into(),
            is_conditional: false,
            elapsed_ms: 1,
        }
    }

    #[test]
    fn the_attempt_that_decided_is_last_and_tells_of_both() {
        let (new, old) = ("https://a.example/new", "https://a.example/old");
        for (outcomes, decided, last) in [
            ((NotACard, NotFound), NotACard, new),
            ((NotFound, NotACard), NotACard, old),
            ((NotFound, Forbidden), Forbidden, old),
            ((NotFound, NotFound), NotFound, new),
        ] {
            let long = "x".repeat(MAX_DETAIL);
            let result = SourceOutcome {
                source_key: 1,
                attempts: vec![
                    attempt(new, outcomes.0, &long),
                    attempt(old, outcomes.1, &long),
                ],
                result: SourceResult::Failed {
                    outcome: decided,
                    retry_after: None,
                },
            };
            let stored = attempts_with_details(&result);
            assert_eq!(stored.len(), 2);
            let (attempt, detail) = stored.last().cloned().unwrap_or_else(|| unreachable!());
            assert_eq!(attempt.url, last, "{outcomes:?}");
            assert!(detail.contains(new) && detail.contains(old), "{detail}");
            assert!(detail.chars().count() <= MAX_SUMMARY);
        }
    }
}
