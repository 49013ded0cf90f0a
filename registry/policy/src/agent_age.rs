//! Ages of agents: attributes that change with time alone, in whole days. A policy may only compare them with numbers,
//! so that it is known when an agent must be evaluated again.

use std::collections::BTreeSet;

use a2a_registry_domain::timestamp::{DAY, Timestamp};
use serde_json::Value;

/// Maximum number of different comparisons of ages in a set: each is a search for agents that reach it.
pub const MAX_AGE_COMPARISONS: usize = 40;
/// Ages beyond this many days are not reached.
const MAX_DAYS: i64 = 36_500;

/// The moment from which an age counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentAge {
    /// The last fetch that returned the card, or said that it has not changed.
    Fetched,
    /// The newest change of the card, approved or not.
    Changed,
    /// The approval of the content that is served.
    Approved,
    /// The last check that an endpoint answered.
    Answered,
}

impl AgentAge {
    pub const ALL: [Self; 4] = [Self::Fetched, Self::Changed, Self::Approved, Self::Answered];

    /// The attribute of policies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fetched => "days_since_fetched",
            Self::Changed => "days_since_changed",
            Self::Approved => "days_since_approved",
            Self::Answered => "days_since_answered",
        }
    }

    /// The age of an expression `resource.days_since_…`, in Cedar's JSON form.
    fn from_expression(expression: &Value) -> Option<Self> {
        let name = expression.get(".")?.get("attr")?.as_str()?;
        Self::ALL.into_iter().find(|age| age.as_str() == name)
    }
}

/// An age in days at which a policy may decide differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgeThreshold {
    pub age: AgentAge,
    /// 0 is reached as soon as there is a moment.
    pub days: i64,
}

impl AgeThreshold {
    /// Whether an age that counts from `moment` has reached the threshold.
    pub fn is_reached(self, moment: Option<i64>, as_of: Timestamp) -> bool {
        moment.is_some() && days_since(moment, as_of) >= self.days
    }

    /// The latest moment from which the age has reached the threshold.
    pub const fn latest_start(self, as_of: Timestamp) -> i64 {
        as_of.0.saturating_sub(self.days.saturating_mul(DAY))
    }
}

/// Whole days since a moment, as policies compare them; -1 if there is none.
pub fn days_since(moment: Option<i64>, as_of: Timestamp) -> i64 {
    match moment {
        Some(moment) => as_of.0.saturating_sub(moment).max(0) / DAY,
        None => -1,
    }
}

/// The thresholds of a policy's conditions, in Cedar's JSON form.
///
/// # Errors The age that a condition uses other than in a comparison with a number.
pub(crate) fn condition_thresholds(
    conditions: &[Value],
) -> Result<BTreeSet<AgeThreshold>, AgentAge> {
    let mut thresholds = BTreeSet::new();
    for condition in conditions {
        collect_thresholds(condition, &mut thresholds)?;
    }
    Ok(thresholds)
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

fn collect_thresholds(
    expression: &Value,
    thresholds: &mut BTreeSet<AgeThreshold>,
) -> Result<(), AgentAge> {
    match expression {
        Value::Object(members) => {
            if let Some(age) = AgentAge::from_expression(expression) {
                return Err(age);
            }
            for (operator, operands) in members {
                match compared_age(operator, operands) {
                    // Whichever operator it is, the comparison changes when the age reaches the number or the next
                    // one.
                    Some((age, number)) => {
                        let days = [number, number.saturating_add(1)].into_iter();
                        let reachable = days.filter(|days| (0..=MAX_DAYS).contains(days));
                        thresholds.extend(reachable.map(|days| AgeThreshold { age, days }));
                    }
                    None => collect_thresholds(operands, thresholds)?,
                }
            }
            Ok(())
        }
        Value::Array(parts) => parts
            .iter()
            .try_for_each(|part| collect_thresholds(part, thresholds)),
        _ => Ok(()),
    }
}

/// The age and the number that an operator compares, if it does.
fn compared_age(operator: &str, operands: &Value) -> Option<(AgentAge, i64)> {
    if !COMPARISONS.contains(&operator) {
        return None;
    }
    let (left, right) = (operands.get("left")?, operands.get("right")?);
    let pair = |age: &Value, number: &Value| {
        Some((AgentAge::from_expression(age)?, parse_integer(number)?))
    };
    pair(left, right).or_else(|| pair(right, left))
}

fn parse_integer(expression: &Value) -> Option<i64> {
    match expression.get("neg") {
        Some(negated) => parse_integer(negated.get("arg")?)?.checked_neg(),
        None => expression.get("Value")?.as_i64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_reached_when_whole_days_have_passed() {
        let threshold = AgeThreshold {
            age: AgentAge::Fetched,
            days: 7,
        };
        let as_of = Timestamp(100 * DAY);
        let latest = threshold.latest_start(as_of);
        for (moment, reached) in [
            (Some(latest), true),
            (Some(latest + 1), false),
            (Some(latest - 1), true),
            (Some(as_of.0 + DAY), false),
            (None, false),
        ] {
            assert_eq!(threshold.is_reached(moment, as_of), reached, "{moment:?}");
        }
        assert_eq!(days_since(None, as_of), -1);
        // A clock that was set back makes no age negative, which would mean that there is no moment.
        assert_eq!(days_since(Some(as_of.0 + DAY), as_of), 0);
    }
}
