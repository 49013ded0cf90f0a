//! The members that each version requires.

use serde_json::Value;

use super::Subject;
use crate::Family;
use crate::finding::Findings;
use crate::member::MAX_LIST;
use crate::pointer::Pointer;
use crate::rules::Rule;

/// What a version requires. An address is not listed: `card.no-address` asks for it in every version.
struct Required {
    card: &'static [&'static str],
    skill: &'static [&'static str],
    provider: &'static [&'static str],
    interface: &'static [&'static str],
    /// Whether an empty list counts as missing.
    filled: bool,
}

const V0_1: Required = Required {
    card: &["version", "capabilities", "skills"],
    skill: &[],
    provider: &["organization"],
    interface: &[],
    filled: false,
};

const V0_2: Required = Required {
    card: &[
        "description",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ],
    skill: &["description", "tags"],
    provider: &["organization", "url"],
    interface: &[],
    filled: false,
};

const V0_3: Required = Required {
    card: &[
        "description",
        "version",
        "protocolVersion",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ],
    ..V0_2
};

const V1_0: Required = Required {
    card: &[
        "description",
        "version",
        "supportedInterfaces",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ],
    interface: &["protocolBinding", "protocolVersion"],
    filled: true,
    ..V0_2
};

/// Checks a card of 0.1, or one that nothing dates.
pub(super) fn v0_1(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    if version(subject) == "0.1" {
        check(subject, &V0_1, rule, out);
    }
}

/// Checks a card of 0.2.
pub(super) fn v0_2(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    if version(subject) == "0.2" {
        check(subject, &V0_2, rule, out);
    }
}

/// Checks a card of 0.3.
pub(super) fn v0_3(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    if version(subject) == "0.3" {
        check(subject, &V0_3, rule, out);
    }
}

/// Checks a card of 1.0, or one that claims to be.
pub(super) fn v1_0(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    if version(subject) == "1.0" {
        check(subject, &V1_0, rule, out);
    }
}

/// The version whose requirements the card is held to: of its family, else of the version it declares.
fn version(subject: &Subject<'_>) -> &'static str {
    match subject.parsed.family {
        Family::V0_1 | Family::Undated => "0.1",
        Family::V0_2 => "0.2",
        Family::V0_3 => "0.3",
        Family::V1_0 | Family::Dual | Family::Flat1 | Family::Snake1 | Family::OtherInterfaces => {
            "1.0"
        }
        Family::Snake0 | Family::NoAddress | Family::Nested => {
            let declared = member(subject.document, "protocolVersion");
            match declared.and_then(Value::as_str).unwrap_or_default() {
                text if text.starts_with("0.2") => "0.2",
                text if text.starts_with("0.3") => "0.3",
                text if text.starts_with('1') => "1.0",
                _ => "0.1",
            }
        }
    }
}

/// Reports every required member that is missing.
fn check(subject: &Subject<'_>, required: &Required, rule: &Rule, out: &mut Findings) {
    let root = Pointer::Root;
    let filled = required.filled;
    for name in required.card {
        let there = member(subject.document, name)
            .or_else(|| nested(subject, name))
            .is_some_and(|value| stands(value, filled));
        if !there {
            missing(name, &root, rule, out);
        }
    }
    if let Some(provider @ Value::Object(_)) = member(subject.document, "provider") {
        each(
            provider,
            required.provider,
            &root.name("provider"),
            filled,
            rule,
            out,
        );
    }
    let lists = [
        ("skills", required.skill),
        ("supportedInterfaces", required.interface),
    ];
    for (list, names) in lists {
        let at = root.name(list);
        let elements = member(subject.document, list).and_then(Value::as_array);
        for (index, element) in elements.into_iter().flatten().take(MAX_LIST).enumerate() {
            if element.is_object() {
                each(element, names, &at.index(index), filled, rule, out);
            }
        }
    }
}

/// Reports the members that one object lacks.
fn each(
    object: &Value,
    names: &[&str],
    at: &Pointer<'_>,
    filled: bool,
    rule: &Rule,
    out: &mut Findings,
) {
    for name in names {
        if !member(object, name).is_some_and(|value| stands(value, filled)) {
            missing(name, at, rule, out);
        }
    }
}

/// One missing member.
fn missing(name: &str, at: &Pointer<'_>, rule: &Rule, out: &mut Findings) {
    out.add(rule, at, &format!("no `{name}`"));
}

/// Whether a value is there: null never is, an empty list only where the version allows one.
fn stands(value: &Value, filled: bool) -> bool {
    !(filled && value.as_array().is_some_and(Vec::is_empty))
}

/// A member in camelCase or `snake_case`; null counts as absent.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let value = object.get(name).filter(|value| !value.is_null());
    value.or_else(|| {
        let spelling = crate::member::snake_case(name);
        object.get(&spelling).filter(|value| !value.is_null())
    })
}

/// A member of the object that a nested card was found in.
fn nested<'a>(subject: &Subject<'a>, name: &str) -> Option<&'a Value> {
    if subject.parsed.family != Family::Nested {
        return None;
    }
    crate::wire::NESTS
        .iter()
        .find_map(|nest| member(subject.document.get(nest)?, name))
}
