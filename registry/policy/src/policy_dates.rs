//! The dates of policies, from `@from` and `@until`, and what is wrong with a policy's annotations.

use a2a_registry_domain::timestamp::Timestamp;
use cedar_policy::Policy as CedarPolicy;

use crate::annotations::ANNOTATIONS;
use crate::policy_error::PolicyError;

/// The days within which a policy acts, from 00:00 UTC to 00:00 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicyDates {
    /// The first moment; `None` without `@from`.
    pub from: Option<Timestamp>,
    /// The first moment after; `None` without `@until`.
    pub until: Option<Timestamp>,
}

impl PolicyDates {
    /// Reads the dates of a policy. A set that was stored with a text that is no date acts as if the text were absent.
    pub(crate) fn from_annotations(policy: &CedarPolicy) -> Self {
        let date = |name: &str| policy.annotation(name).and_then(parse_date);
        Self {
            from: date("from"),
            until: date("until"),
        }
    }

    pub fn contains(self, moment: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= moment) && self.until.is_none_or(|until| moment < until)
    }

    pub(crate) fn is_bounded(self) -> bool {
        self.from.is_some() || self.until.is_some()
    }
}

/// Reads a date such as `2026-12-15` as its first moment in UTC.
pub fn parse_date(text: &str) -> Option<Timestamp> {
    // RFC 3339 also has times and offsets, which a date has not.
    let is_date = text.len() == "2026-12-15".len();
    let midnight = format!("{text}T00:00:00Z");
    is_date.then(|| midnight.parse().ok()).flatten()
}

/// The errors of a new policy's annotations. Stored sets are not checked: they may be older than an annotation.
pub(crate) fn annotation_errors(id: &str, text: &str, policy: &CedarPolicy) -> Vec<PolicyError> {
    let mut errors = Vec::new();
    for (name, value) in policy.annotations() {
        let is_date = name == "from" || name == "until";
        let message = if !ANNOTATIONS.contains(&name) {
            let known: Vec<String> = ANNOTATIONS.iter().map(|one| format!("`@{one}`")).collect();
            format!(
                "the annotation `@{name}` is unknown; a policy may have {}",
                known.join(", ")
            )
        } else if is_date && parse_date(value).is_none() {
            let value: String = value.chars().take(40).collect();
            format!("`@{name}` must be a date such as \"2026-12-15\", not {value:?}")
        } else {
            continue;
        };
        let byte = text.find(&format!("@{name}")).unwrap_or(0);
        errors.push(PolicyError::at_byte(id, text, byte, message));
    }
    let dates = PolicyDates::from_annotations(policy);
    if let (Some(from), Some(until)) = (dates.from, dates.until)
        && from >= until
    {
        let message = "`@until` must be after `@from`; it is the first day on which the policy no longer acts";
        let byte = text.find("@until").unwrap_or(0);
        errors.push(PolicyError::at_byte(id, text, byte, message));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_its_first_moment_in_utc() {
        assert_eq!(
            parse_date("2026-01-01").map(Timestamp::to_rfc3339),
            Some("2026-01-01T00:00:00Z".to_owned())
        );
        for text in [
            "",
            "2026-1-1",
            "2026-02-30",
            "01.01.2026",
            "2026-01-01T00",
            "2026-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_day_counts_and_the_last_does_not() {
        let dates = PolicyDates {
            from: parse_date("2026-12-15"),
            until: parse_date("2027-01-05"),
        };
        for (moment, expected) in [
            ("2026-12-14T23:59:59.999999Z", false),
            ("2026-12-15T00:00:00Z", true),
            ("2027-01-04T23:59:59.999999Z", true),
            ("2027-01-05T00:00:00Z", false),
        ] {
            let is_within = moment
                .parse::<Timestamp>()
                .map(|moment| dates.contains(moment));
            assert_eq!(is_within, Ok(expected), "{moment}");
        }
        assert!(PolicyDates::default().contains(Timestamp(i64::MIN)));
    }
}
