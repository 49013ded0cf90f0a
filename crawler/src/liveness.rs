//! Liveness: whether a source's card is reachable, derived from a few facts about past fetches. Pure.
//!
//! While the circuit breaker is open, the caller does not call [`FailureHistory::with_fetch`], and no state changes.

use time::{Duration, OffsetDateTime};

use crate::AttemptOutcome;

/// Period of 404 responses after which a card is gone, together with [`NOT_FOUND_FETCHES`].
pub const NOT_FOUND_PERIOD: Duration = Duration::hours(24);
/// Number of 404 responses after which a card is gone, together with [`NOT_FOUND_PERIOD`].
pub const NOT_FOUND_FETCHES: u32 = 3;
/// Number of 410 responses after which a card is gone, together with [`GONE_SPACING`].
pub const GONE_FETCHES: u32 = 2;
/// Minimum time between the first and the last of these 410 responses.
pub const GONE_SPACING: Duration = Duration::hours(1);
/// Period of NXDOMAIN after which the card is gone.
pub const NO_SUCH_HOST_PERIOD: Duration = Duration::hours(72);
/// Period of invalid TLS after which the card is gone; it is stale at once.
pub const TLS_INVALID_PERIOD: Duration = Duration::hours(24);
/// Period of any other failure, in particular timeouts and server errors, after which the card is gone.
pub const UNREACHABLE_PERIOD: Duration = Duration::days(7);
/// Period after which a card that is gone is retired.
pub const RETIREMENT_PERIOD: Duration = Duration::days(30);

/// Whether the card can be fetched. Says nothing about the agent itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Liveness {
    /// The last fetch returned a card.
    Fresh,
    /// The last fetch failed; the last good card is served, with the reason.
    Stale,
    /// Fetches have failed for so long that the agent is removed from the default search.
    Gone,
}

/// Facts about a source's fetches since the last success, from which its liveness is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FailureHistory {
    /// Start of the current series of failures, whatever their causes.
    pub failing_since: Option<OffsetDateTime>,
    /// The cause that counts: the latest definite one, or else the latest transient one.
    pub cause: Option<FailureCause>,
}

/// The cause of a series of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCause {
    /// Outcome of these fetches; never `Card`, `Catalog` or `NotModified`.
    pub outcome: AttemptOutcome,
    /// Time of the first of these fetches.
    pub since: OffsetDateTime,
    /// Time of the latest of these fetches.
    pub latest_at: OffsetDateTime,
    /// Number of these fetches.
    pub fetch_count: u32,
}

impl FailureHistory {
    /// The history after another fetch, made at `now`, that ended with `outcome`.
    ///
    /// A success clears the history. A transient failure (such as a timeout) between two definite ones (such as 404)
    /// neither confirms nor refutes them, so it does not restart their count.
    pub fn with_fetch(self, outcome: AttemptOutcome, now: OffsetDateTime) -> Self {
        if is_success(outcome) {
            return Self::default();
        }
        let failing_since = Some(self.failing_since.unwrap_or(now));
        let cause = match self.cause {
            Some(cause) if cause.outcome == outcome => FailureCause {
                latest_at: now,
                fetch_count: cause.fetch_count.saturating_add(1),
                ..cause
            },
            Some(cause) if is_definite_failure(cause.outcome) && !is_definite_failure(outcome) => {
                cause
            }
            _ => FailureCause {
                outcome,
                since: now,
                latest_at: now,
                fetch_count: 1,
            },
        };
        Self {
            failing_since,
            cause: Some(cause),
        }
    }

    /// The liveness at `now`, with the reason unless it is [`Liveness::Fresh`].
    pub fn liveness_at(&self, now: OffsetDateTime) -> (Liveness, Option<String>) {
        let (Some(cause), Some(failing_since)) = (self.cause, self.failing_since) else {
            return (Liveness::Fresh, None);
        };
        let duration = now - cause.since;
        let is_gone = match cause.outcome {
            AttemptOutcome::NotFound => {
                duration >= NOT_FOUND_PERIOD && cause.fetch_count >= NOT_FOUND_FETCHES
            }
            AttemptOutcome::Gone => {
                cause.fetch_count >= GONE_FETCHES && cause.latest_at - cause.since >= GONE_SPACING
            }
            AttemptOutcome::NoSuchHost => duration >= NO_SUCH_HOST_PERIOD,
            AttemptOutcome::TlsInvalid => duration >= TLS_INVALID_PERIOD,
            // The origin is up and serves something else, probably by mistake, so the last good version is kept.
            AttemptOutcome::NotACard | AttemptOutcome::NotACatalog => {
                return (Liveness::Stale, Some(describe_failure_cause(cause)));
            }
            _ => false,
        };
        let liveness = if is_gone || now - failing_since >= UNREACHABLE_PERIOD {
            Liveness::Gone
        } else {
            Liveness::Stale
        };
        (liveness, Some(describe_failure_cause(cause)))
    }
}

/// Whether a card that has been gone since `gone_since` is due to be retired.
pub fn is_due_for_retirement(gone_since: OffsetDateTime, now: OffsetDateTime) -> bool {
    now - gone_since >= RETIREMENT_PERIOD
}

const fn is_success(outcome: AttemptOutcome) -> bool {
    matches!(
        outcome,
        AttemptOutcome::Card | AttemptOutcome::Catalog | AttemptOutcome::NotModified
    )
}

/// Whether an outcome is about the card rather than a temporary condition.
const fn is_definite_failure(outcome: AttemptOutcome) -> bool {
    matches!(
        outcome,
        AttemptOutcome::NotFound
            | AttemptOutcome::Gone
            | AttemptOutcome::NoSuchHost
            | AttemptOutcome::TlsInvalid
            | AttemptOutcome::NotACard
            | AttemptOutcome::NotACatalog
    )
}

fn describe_failure_cause(cause: FailureCause) -> String {
    let description = match cause.outcome {
        AttemptOutcome::NotFound => "the origin responds with status 404",
        AttemptOutcome::Gone => "the origin responds with status 410",
        AttemptOutcome::NoSuchHost => "the name does not resolve",
        AttemptOutcome::TlsInvalid => "the TLS certificate or handshake is not valid",
        AttemptOutcome::NotACard => "the origin serves something that is not a card",
        AttemptOutcome::NotACatalog => "the origin serves something that is not a catalog",
        AttemptOutcome::Forbidden => "the origin requires credentials",
        AttemptOutcome::Throttled => "the origin limits the rate of requests",
        AttemptOutcome::BadStatus => "the origin responds with an error",
        AttemptOutcome::BadRedirect => {
            "the origin sends a redirect that the registry does not follow"
        }
        AttemptOutcome::BadBody => "the origin's response is too large or broken",
        AttemptOutcome::Refused => "the registry's guard rejects the target",
        AttemptOutcome::DnsFailure => "the name temporarily cannot be resolved",
        AttemptOutcome::Unreachable => "the origin cannot be reached",
        AttemptOutcome::Timeout => "the origin does not respond in time",
        AttemptOutcome::Card | AttemptOutcome::Catalog | AttemptOutcome::NotModified => {
            "the last fetch failed"
        }
    };
    let since = cause.since.to_offset(time::UtcOffset::UTC);
    format!(
        "{description} since {} {:02}:{:02} UTC",
        since.date(),
        since.hour(),
        since.minute()
    )
}

#[cfg(test)]
mod tests {
    use AttemptOutcome::{
        Card, DnsFailure, Forbidden, Gone, NoSuchHost, NotACard, NotFound, NotModified, Timeout,
        TlsInvalid,
    };
    use time::macros::datetime;

    use super::*;

    const START: OffsetDateTime = datetime!(2026-11-20 12:00:00 UTC);

    /// The liveness at minute `at` after fetches at these minutes.
    fn judged(fetches: &[(AttemptOutcome, i64)], at: i64) -> Liveness {
        let history =
            fetches
                .iter()
                .fold(FailureHistory::default(), |history, (outcome, minute)| {
                    history.with_fetch(*outcome, START + Duration::minutes(*minute))
                });
        let (liveness, reason) = history.liveness_at(START + Duration::minutes(at));
        assert_eq!(liveness == Liveness::Fresh, reason.is_none());
        liveness
    }

    const HOUR: i64 = 60;
    const DAY: i64 = 24 * HOUR;

    #[test]
    fn each_cause_has_its_own_limit() {
        use Liveness::{Fresh, Gone as G, Stale};
        for (fetches, at, expected) in [
            (&[][..], 0, Fresh),
            (&[(Card, 0)], 99 * DAY, Fresh),
            (&[(NotFound, 0), (NotModified, 5)], 5, Fresh),
            (&[(NotFound, 0)], 0, Stale),
            (&[(NotFound, 0), (NotFound, 10)], 3 * DAY, Stale),
            (
                &[(NotFound, 0), (NotFound, 10), (NotFound, 20)],
                DAY - 1,
                Stale,
            ),
            (&[(NotFound, 0), (NotFound, 10), (NotFound, 20)], DAY, G),
            (&[(Gone, 0)], 6 * DAY, Stale),
            (&[(Gone, 0), (Gone, 59)], 2 * DAY, Stale),
            (&[(Gone, 0), (Gone, 60)], 60, G),
            (&[(NoSuchHost, 0)], 3 * DAY - 1, Stale),
            (&[(NoSuchHost, 0)], 3 * DAY, G),
            (&[(TlsInvalid, 0)], 0, Stale),
            (&[(TlsInvalid, 0)], DAY - 1, Stale),
            (&[(TlsInvalid, 0)], DAY, G),
            (&[(Timeout, 0)], 7 * DAY - 1, Stale),
            (&[(Timeout, 0)], 7 * DAY, G),
            (&[(Forbidden, 0)], 7 * DAY, G),
            (&[(DnsFailure, 0), (Timeout, 6 * DAY)], 7 * DAY, G),
            (&[(NotACard, 0)], 99 * DAY, Stale),
        ] {
            assert_eq!(judged(fetches, at), expected, "{fetches:?} at {at}");
        }
    }

    #[test]
    fn a_transient_failure_neither_confirms_nor_refutes() {
        let looks = [
            (NotFound, 0),
            (Timeout, 5),
            (NotFound, 10),
            (DnsFailure, 15),
            (NotFound, 20),
        ];
        assert_eq!(judged(&looks, DAY - 1), Liveness::Stale);
        assert_eq!(judged(&looks, DAY), Liveness::Gone);
        // Another definite cause restarts the count: a repaired DNS entry that leads to a 404 is a new fact.
        let looks = [(NoSuchHost, 0), (NotFound, 71 * HOUR)];
        assert_eq!(judged(&looks, 72 * HOUR), Liveness::Stale);
        // A success between two failures clears the history.
        let looks = [(Gone, 0), (Card, 30), (Gone, 90)];
        assert_eq!(judged(&looks, 91), Liveness::Stale);
    }

    #[test]
    fn retirement_follows_thirty_days_later() {
        assert!(!is_due_for_retirement(
            START,
            START + RETIREMENT_PERIOD - Duration::SECOND
        ));
        assert!(is_due_for_retirement(START, START + RETIREMENT_PERIOD));
    }

    #[test]
    fn the_reason_names_cause_and_moment() {
        let (_, reason) = FailureHistory::default()
            .with_fetch(NotFound, START)
            .liveness_at(START);
        assert_eq!(
            reason.as_deref(),
            Some("the origin responds with status 404 since 2026-11-20 12:00 UTC")
        );
    }
}
