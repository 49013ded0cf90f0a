//! Ownership: when a domain counts as proved, and which account owns it (docs/publish/prove.md).

use uuid::Uuid;

use super::text_enum::text_enum;
use super::timestamp::{DAY, HOUR, Timestamp};

/// Interval between two checks of a proof, varied by up to a tenth.
pub const CHECK_INTERVAL: i64 = DAY;
/// Time for which a challenge is valid.
pub const CHALLENGE_VALIDITY: i64 = 7 * DAY;
/// Consecutive checks without the proof after which it ends, if they also span [`MIN_ABSENT_TIME`].
pub const MIN_ABSENT_CHECKS: i32 = 3;
/// Minimum time that these checks span, in microseconds.
pub const MIN_ABSENT_TIME: i64 = 72 * HOUR;
/// Time without a successful check after which a proof ends, whatever the reason.
pub const MAX_UNSEEN_TIME: i64 = 10 * DAY;
/// Maximum number of failed checks of an account for one domain within [`HOUR`].
pub const MAX_FAILED_CHECKS: u64 = 5;

text_enum! {
    /// The state of a domain.
    DomainState {
        Unverified = "unverified",
        Verified = "verified",
        /// The domain had a proof and has none anymore.
        Lapsed = "lapsed",
        /// Two accounts have equally strong proofs.
        Disputed = "disputed",
        OptedOut = "opted_out",
    }
}

text_enum! {
    /// The method of a proof. A later one is stronger.
    Method {
        Operator = "operator",
        /// A file on the website.
        Http = "http",
        /// A DNS record of a parent domain that also covers its subdomains.
        DnsParent = "dns-parent",
        /// A DNS record of the domain itself.
        Dns = "dns",
    }
}

text_enum! {
    /// The source of a domain's opt-out from listing.
    OptOut {
        /// The domain's own DNS record, which can also end the opt-out.
        Record = "record",
        Owner = "owner",
    }
}

text_enum! {
    /// The result of a check for a proof.
    ProofOutcome {
        Held = "held",
        Absent = "absent",
        /// Found with another value, or with an invalid one.
        Wrong = "wrong",
        /// The check failed: the name server or the website did not respond. The proof may still exist.
        Unknown = "unknown",
        /// The DNS response failed DNSSEC validation.
        Bogus = "bogus",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofHistory {
    pub last_found_at: Timestamp,
    pub absent_since: Option<Timestamp>,
    pub absent_checks: i32,
}

impl ProofHistory {
    /// A proof that has just been found.
    pub const fn new(now: Timestamp) -> Self {
        Self {
            last_found_at: now,
            absent_since: None,
            absent_checks: 0,
        }
    }

    /// The history after one more check. The error is the reason why the proof ends.
    pub fn after_check(self, outcome: ProofOutcome, now: Timestamp) -> Result<Self, &'static str> {
        let history = match outcome {
            ProofOutcome::Held => return Ok(Self::new(now)),
            ProofOutcome::Bogus => return Err("the DNS response for it was forged"),
            ProofOutcome::Unknown => self,
            ProofOutcome::Absent | ProofOutcome::Wrong => Self {
                absent_since: self.absent_since.or(Some(now)),
                absent_checks: self.absent_checks.saturating_add(1),
                ..self
            },
        };
        let absent_for = history.absent_since.map_or(0, |since| now.0 - since.0);
        if history.absent_checks >= MIN_ABSENT_CHECKS && absent_for >= MIN_ABSENT_TIME {
            return Err("it was missing for three days");
        }
        if now.0 - history.last_found_at.0 >= MAX_UNSEEN_TIME {
            return Err("it was not found for ten days");
        }
        Ok(history)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnershipClaim {
    pub method: Method,
    /// The account; `None` for an admin's vouch.
    pub account: Option<Uuid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainOwnership {
    pub state: DomainState,
    /// The owner, if one account has the strongest proof.
    pub owner: Option<Uuid>,
}

/// The state and owner that a domain's proofs determine: the account with the strongest proof owns the domain; two
/// accounts with equally strong proofs dispute it. An admin's vouch verifies the domain without giving it an owner.
pub fn resolve_ownership(
    claims: &[OwnershipClaim],
    has_lapsed: bool,
    opted_out: bool,
) -> DomainOwnership {
    let owned = |claim: &&OwnershipClaim| claim.account.is_some();
    let best = claims.iter().filter(owned).map(|claim| claim.method).max();
    let mut owners: Vec<Uuid> = claims
        .iter()
        .filter(|claim| Some(claim.method) == best)
        .filter_map(|claim| claim.account)
        .collect();
    owners.sort_unstable();
    owners.dedup();
    let owner = match owners.as_slice() {
        [owner] => Some(*owner),
        _ => None,
    };
    let state = if opted_out {
        DomainState::OptedOut
    } else if owners.len() > 1 {
        DomainState::Disputed
    } else if !claims.is_empty() {
        DomainState::Verified
    } else if has_lapsed {
        DomainState::Lapsed
    } else {
        DomainState::Unverified
    };
    DomainOwnership { state, owner }
}

/// The time of a domain's next check; `random` is in `0..1`.
pub fn next_domain_check_time(now: Timestamp, random: f64) -> Timestamp {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a tenth of a day has few digits"
    )]
    let jitter = (CHECK_INTERVAL as f64 * 0.1 * (2.0 * random - 1.0)) as i64;
    now.plus_micros(CHECK_INTERVAL + jitter)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const START: Timestamp = Timestamp(1_000 * DAY);

    /// Runs a check every `hours` hours; returns the number of hours after which the proof ends.
    fn ends(hours: i64, checks: impl Fn(i64) -> ProofOutcome) -> Option<i64> {
        let mut history = ProofHistory::new(START);
        for number in 1..=240 {
            let now = START.plus_micros(number * hours * HOUR);
            match history.after_check(checks(number), now) {
                Ok(next) => history = next,
                Err(_) => return Some(number * hours),
            }
        }
        None
    }

    #[test]
    fn a_missing_record_ends_a_proof_after_three_checks_over_three_days() {
        assert_eq!(ends(24, |_| ProofOutcome::Absent), Some(4 * 24));
        assert_eq!(ends(1, |_| ProofOutcome::Absent), Some(73));
        // Two checks do not suffice, however far apart they are.
        assert_eq!(ends(72, |_| ProofOutcome::Wrong), Some(9 * 24));
        // A record that reappears restarts the count.
        assert_eq!(
            ends(24, |day| if day % 3 == 0 {
                ProofOutcome::Held
            } else {
                ProofOutcome::Absent
            }),
            None
        );
    }

    #[test]
    fn a_failed_check_is_not_absence() {
        assert_eq!(ends(24, |_| ProofOutcome::Unknown), Some(240));
        assert_eq!(
            ends(24, |day| if day % 9 == 0 {
                ProofOutcome::Held
            } else {
                ProofOutcome::Unknown
            }),
            None
        );
        // A failed check does not restart the count of absences.
        let mixed = |day: i64| match day {
            1 | 3 | 5 => ProofOutcome::Absent,
            _ => ProofOutcome::Unknown,
        };
        assert_eq!(ends(24, mixed), Some(5 * 24));
    }

    #[test]
    fn a_forged_answer_ends_it_at_once() {
        assert_eq!(ends(24, |_| ProofOutcome::Bogus), Some(24));
    }

    #[test]
    fn the_strongest_proof_says_whose_it_is() {
        let [one, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let claim = |method, account| OwnershipClaim { method, account };
        let dns = |account| claim(Method::Dns, Some(account));
        let http = |account| claim(Method::Http, Some(account));
        let parent = |account| claim(Method::DnsParent, Some(account));
        let vouched = claim(Method::Operator, None);
        let cases: [(&[OwnershipClaim], DomainState, Option<Uuid>); 8] = [
            (&[], DomainState::Unverified, None),
            (&[vouched], DomainState::Verified, None),
            (&[dns(one)], DomainState::Verified, Some(one)),
            (&[dns(one), http(other)], DomainState::Verified, Some(one)),
            (&[dns(one), parent(other)], DomainState::Verified, Some(one)),
            (
                &[parent(one), http(other)],
                DomainState::Verified,
                Some(one),
            ),
            (&[dns(one), dns(other)], DomainState::Disputed, None),
            (
                &[dns(one), http(one), vouched],
                DomainState::Verified,
                Some(one),
            ),
        ];
        for (claims, state, owner) in cases {
            assert_eq!(
                resolve_ownership(claims, false, false),
                DomainOwnership { state, owner },
                "{claims:?}"
            );
        }
        assert_eq!(
            resolve_ownership(&[], true, false).state,
            DomainState::Lapsed
        );
        assert_eq!(
            resolve_ownership(&[dns(one)], true, true).state,
            DomainState::OptedOut
        );
    }

    #[test]
    fn checks_are_a_day_apart_give_or_take_a_tenth() {
        assert_eq!(next_domain_check_time(START, 0.5), START.plus_micros(DAY));
        assert_eq!(
            next_domain_check_time(START, 0.0),
            START.plus_micros(DAY - DAY / 10)
        );
        assert!(next_domain_check_time(START, 0.999).0 < START.plus_micros(DAY + DAY / 10).0);
    }
}
