//! Compares alternatives of security requirements, by the callers that they admit.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

/// Schemes that must all be met, with the scopes of each.
pub(super) type Alternative<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Most pairs of alternatives that are compared; beyond that, an alternative without an identical one counts as weaker.
const MAX_PAIRS: usize = 4_096;

/// Most schemes and scopes of an alternative that are compared.
const MAX_NAMES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequirementChange {
    Same,
    /// Some callers are no longer admitted.
    Stricter,
    /// New callers are admitted, or the requirements cannot be compared.
    Weaker,
}

/// The alternatives of a list in either form, `{name: [scopes]}` or `{"schemes": {name: {"list": […]}}}`; an empty list
/// is one alternative without schemes. `None` for a value that clients may read differently.
pub(super) fn alternatives(value: Option<&Value>) -> Option<Vec<Alternative<'_>>> {
    let list = match value {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(list)) => list,
        Some(_) => return None,
    };
    let mut read: Vec<Alternative<'_>> = list.iter().map(alternative).collect::<Option<_>>()?;
    if read.is_empty() {
        read.push(Alternative::new());
    }
    Some(read)
}

fn alternative(value: &Value) -> Option<Alternative<'_>> {
    let members = value.as_object()?;
    if members.keys().any(|name| name.contains('\0')) {
        return None;
    }
    match members.get("schemes") {
        Some(Value::Object(schemes)) if members.len() == 1 => schemes
            .iter()
            .map(|(name, scopes)| {
                let scopes = match scopes {
                    Value::Null => BTreeSet::new(),
                    Value::Object(inner) if inner.is_empty() => BTreeSet::new(),
                    Value::Object(inner) if inner.len() == 1 => texts(inner.get("list")?)?,
                    _ => return None,
                };
                (!name.contains('\0')).then_some((name.as_str(), scopes))
            })
            .collect(),
        Some(_) => None,
        None => members
            .iter()
            .map(|(name, scopes)| Some((name.as_str(), texts(scopes)?)))
            .collect(),
    }
}

fn texts(value: &Value) -> Option<BTreeSet<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Compares the alternatives of two cards; unreadable ones count as weaker.
pub(super) fn weigh(
    before: Option<&[Alternative<'_>]>,
    after: Option<&[Alternative<'_>]>,
) -> RequirementChange {
    let (Some(before), Some(after)) = (before, after) else {
        return RequirementChange::Weaker;
    };
    let known: HashSet<&Alternative<'_>> = before.iter().collect();
    let strangers: HashSet<&Alternative<'_>> =
        after.iter().filter(|one| !known.contains(one)).collect();
    if strangers.len().saturating_mul(known.len()) > MAX_PAIRS {
        return RequirementChange::Weaker;
    }
    let asks_as_much = |stranger: &&Alternative<'_>| known.iter().any(|one| covers(stranger, one));
    if !strangers.iter().all(asks_as_much) {
        return RequirementChange::Weaker;
    }
    let kept: HashSet<&Alternative<'_>> = after.iter().collect();
    if known.iter().all(|one| kept.contains(one)) {
        RequirementChange::Same
    } else {
        RequirementChange::Stricter
    }
}

/// Whether every caller that meets `one` also meets `other`.
fn covers(one: &Alternative<'_>, other: &Alternative<'_>) -> bool {
    let names = |alternative: &Alternative<'_>| -> usize {
        alternative.values().map(|scopes| 1 + scopes.len()).sum()
    };
    if names(other) > MAX_NAMES {
        return false;
    }
    other.iter().all(|(name, scopes)| {
        one.get(name)
            .is_some_and(|granted| scopes.is_subset(granted))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(before: &Value, after: &Value) -> RequirementChange {
        let read = |value| alternatives(Some(value));
        weigh(read(before).as_deref(), read(after).as_deref())
    }

    #[test]
    fn alternatives_are_weighed_as_sets() {
        use RequirementChange::{Same, Stricter, Weaker};
        let none = json!([]);
        for (before, after, there, back) in [
            (
                json!([{"a": []}]),
                json!([{"a": []}, {"b": []}]),
                Weaker,
                Stricter,
            ),
            (
                json!([{"a": [], "b": []}]),
                json!([{"a": []}]),
                Weaker,
                Stricter,
            ),
            (
                json!([{"a": ["r", "w"]}]),
                json!([{"a": ["r"]}]),
                Weaker,
                Stricter,
            ),
            (json!([{"a": []}]), none.clone(), Weaker, Stricter),
            (json!([{"a": []}]), json!([{}]), Weaker, Stricter),
            (json!([{"a": []}]), json!([{"a": []}, {}]), Weaker, Stricter),
            (json!([{"a": []}]), json!([{"b": []}]), Weaker, Weaker),
            (
                json!([{"a": []}, {"b": []}]),
                json!([{"b": []}, {"a": []}]),
                Same,
                Same,
            ),
            (
                json!([{"a": ["r", "w"]}]),
                json!([{"schemes": {"a": {"list": ["w", "r"]}}}]),
                Same,
                Same,
            ),
            (
                json!([{"a": []}]),
                json!([{"schemes": {"a": {}}}]),
                Same,
                Same,
            ),
            (none, json!([{}]), Same, Same),
            (json!([{"a": []}]), json!([{"a": "r"}]), Weaker, Weaker),
            (json!([{"a": []}]), json!([["a"]]), Weaker, Weaker),
            (
                json!([{"a": []}]),
                json!([{"a": [], "schemes": []}]),
                Weaker,
                Weaker,
            ),
            (
                json!([{"a": []}]),
                json!([{"schemes": {"a": {"list": [], "x": 1}}}]),
                Weaker,
                Weaker,
            ),
            (json!([{"a": []}]), json!({"a": []}), Weaker, Weaker),
            (
                json!([{"a": []}]),
                json!([{"a": [], "a\u{0}1": []}]),
                Weaker,
                Weaker,
            ),
        ] {
            assert_eq!(verdict(&before, &after), there, "{before} to {after}");
            assert_eq!(verdict(&after, &before), back, "{after} to {before}");
        }
    }

    #[test]
    fn too_many_alternatives_to_weigh_are_weaker() {
        let list = |n: usize, more: &[&str]| -> Value {
            (0..n)
                .map(|i| {
                    let mut one = json!({i.to_string(): []});
                    more.iter().for_each(|name| one[*name] = json!([]));
                    one
                })
                .collect()
        };
        let side = 64;
        assert_eq!(side * side, MAX_PAIRS);
        assert_eq!(
            verdict(&list(side, &[]), &list(side, &["x"])),
            RequirementChange::Stricter
        );
        assert_eq!(
            verdict(&list(side + 1, &[]), &list(side, &["x"])),
            RequirementChange::Weaker
        );
        let wide = |scopes: usize| -> Value {
            let scopes: Vec<String> = (0..scopes).map(|i| i.to_string()).collect();
            json!([{"a": scopes}])
        };
        assert_eq!(verdict(&wide(63), &wide(100)), RequirementChange::Stricter);
        assert_eq!(verdict(&wide(64), &wide(100)), RequirementChange::Weaker);
    }
}
