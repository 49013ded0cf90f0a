//! Comparison of alternative security requirements, by the callers that they admit.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

/// Schemes that must all be met, with the scopes of each.
pub(super) type SchemeScopes<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Maximum number of compared pairs of alternatives; beyond it, an alternative without an identical one counts as
/// weaker.
const MAX_COMPARED_PAIRS: usize = 4_096;

/// Maximum number of schemes and scopes of an alternative that are compared.
const MAX_COMPARED_NAMES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequirementChange {
    Same,
    /// Some callers are no longer admitted.
    Stricter,
    /// New callers are admitted, or the requirements cannot be compared.
    Weaker,
}

/// Parses the alternatives of a list in either form, `{name: [scopes]}` or `{"schemes": {name: {"list": […]}}}`; an
/// empty list is one alternative without schemes. `None` for a value that clients may read differently.
pub(super) fn parse_auth_alternatives(value: Option<&Value>) -> Option<Vec<SchemeScopes<'_>>> {
    let list = match value {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(list)) => list,
        Some(_) => return None,
    };
    let mut parsed: Vec<SchemeScopes<'_>> = list
        .iter()
        .map(parse_auth_alternative)
        .collect::<Option<_>>()?;
    if parsed.is_empty() {
        parsed.push(SchemeScopes::new());
    }
    Some(parsed)
}

fn parse_auth_alternative(value: &Value) -> Option<SchemeScopes<'_>> {
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
                    Value::Object(inner) if inner.len() == 1 => text_set(inner.get("list")?)?,
                    _ => return None,
                };
                (!name.contains('\0')).then_some((name.as_str(), scopes))
            })
            .collect(),
        Some(_) => None,
        None => members
            .iter()
            .map(|(name, scopes)| Some((name.as_str(), text_set(scopes)?)))
            .collect(),
    }
}

fn text_set(value: &Value) -> Option<BTreeSet<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Compares the alternatives of two cards; unreadable ones count as weaker.
pub(super) fn compare_auth_alternatives(
    before: Option<&[SchemeScopes<'_>]>,
    after: Option<&[SchemeScopes<'_>]>,
) -> RequirementChange {
    let (Some(before), Some(after)) = (before, after) else {
        return RequirementChange::Weaker;
    };
    let old_alternatives: HashSet<&SchemeScopes<'_>> = before.iter().collect();
    let new_only: HashSet<&SchemeScopes<'_>> = after
        .iter()
        .filter(|one| !old_alternatives.contains(one))
        .collect();
    if new_only.len().saturating_mul(old_alternatives.len()) > MAX_COMPARED_PAIRS {
        return RequirementChange::Weaker;
    }
    let is_as_strict = |added: &&SchemeScopes<'_>| {
        old_alternatives
            .iter()
            .any(|one| is_alternative_as_strict(added, one))
    };
    if !new_only.iter().all(is_as_strict) {
        return RequirementChange::Weaker;
    }
    let new_alternatives: HashSet<&SchemeScopes<'_>> = after.iter().collect();
    if old_alternatives
        .iter()
        .all(|one| new_alternatives.contains(one))
    {
        RequirementChange::Same
    } else {
        RequirementChange::Stricter
    }
}

/// Whether every caller that meets `alternative` also meets `other`.
fn is_alternative_as_strict(alternative: &SchemeScopes<'_>, other: &SchemeScopes<'_>) -> bool {
    let count_names = |alternative: &SchemeScopes<'_>| -> usize {
        alternative.values().map(|scopes| 1 + scopes.len()).sum()
    };
    if count_names(other) > MAX_COMPARED_NAMES {
        return false;
    }
    other.iter().all(|(name, scopes)| {
        alternative
            .get(name)
            .is_some_and(|granted| scopes.is_subset(granted))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compare_requirement_values(before: &Value, after: &Value) -> RequirementChange {
        let parse = |value| parse_auth_alternatives(Some(value));
        compare_auth_alternatives(parse(before).as_deref(), parse(after).as_deref())
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
            assert_eq!(
                compare_requirement_values(&before, &after),
                there,
                "{before} to {after}"
            );
            assert_eq!(
                compare_requirement_values(&after, &before),
                back,
                "{after} to {before}"
            );
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
        assert_eq!(side * side, MAX_COMPARED_PAIRS);
        assert_eq!(
            compare_requirement_values(&list(side, &[]), &list(side, &["x"])),
            RequirementChange::Stricter
        );
        assert_eq!(
            compare_requirement_values(&list(side + 1, &[]), &list(side, &["x"])),
            RequirementChange::Weaker
        );
        let with_scopes = |scopes: usize| -> Value {
            let scopes: Vec<String> = (0..scopes).map(|i| i.to_string()).collect();
            json!([{"a": scopes}])
        };
        assert_eq!(
            compare_requirement_values(&with_scopes(63), &with_scopes(100)),
            RequirementChange::Stricter
        );
        assert_eq!(
            compare_requirement_values(&with_scopes(64), &with_scopes(100)),
            RequirementChange::Weaker
        );
    }
}
