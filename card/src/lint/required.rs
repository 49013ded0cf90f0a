//! Rules for the members that each version requires.

use serde_json::Value;

use super::subject::{Subject, member};
use crate::finding::Findings;
use crate::member::MAX_LIST;
use crate::pointer::Pointer;
use crate::rule::Rule;
use crate::{Family, UNKNOWN_BINDING};

/// The members that a version requires, except for an address, which `card.no-address` reports in every version.
struct Required {
    card: &'static [&'static str],
    skill: &'static [&'static str],
    provider: &'static [&'static str],
    interface: &'static [&'static str],
    additional: &'static [&'static str],
    filled: bool,
}

const V0_1: Required = Required {
    card: &["url", "version", "capabilities", "skills"],
    skill: &[],
    provider: &["organization"],
    interface: &[],
    additional: &[],
    filled: false,
};

const V0_2: Required = Required {
    card: &[
        "url",
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
    additional: &["url", "transport"],
    filled: false,
};

const V0_3: Required = Required {
    card: &[
        "url",
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
    interface: &["url", "protocolBinding", "protocolVersion"],
    additional: &[],
    filled: true,
    ..V0_2
};

pub(super) fn v0_1(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    check(subject, "0.1", &V0_1, rule, out);
}

pub(super) fn v0_2(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    check(subject, "0.2", &V0_2, rule, out);
}

pub(super) fn v0_3(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    check(subject, "0.3", &V0_3, rule, out);
}

pub(super) fn v1_0(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    check(subject, "1.0", &V1_0, rule, out);
}

/// The versions whose requirements apply to the card: that of its family, else the one that it declares.
pub(super) fn held_to(subject: &Subject<'_>) -> &'static [&'static str] {
    match subject.parsed.family {
        Family::V0_1 | Family::Undated => &["0.1"],
        Family::V0_2 => &["0.2"],
        Family::V0_3 => &["0.3"],
        // A card that a registry converted to 0.3 may have an agent that speaks 1.0.
        Family::Flat1 if subject.is_converted() => &["0.3"],
        Family::V1_0 | Family::Flat1 | Family::Snake1 | Family::OtherInterfaces => &["1.0"],
        Family::Dual => &["0.3", "1.0"],
        Family::Snake0 | Family::NoAddress | Family::Nested => {
            let declared = subject.find("protocolVersion");
            match declared
                .and_then(|(_, value)| value.as_str())
                .unwrap_or_default()
            {
                text if text.starts_with("0.2") => &["0.2"],
                text if text.starts_with("0.3") => &["0.3"],
                text if text.starts_with('1') => &["1.0"],
                _ => &["0.1"],
            }
        }
    }
}

fn check(
    subject: &Subject<'_>,
    version: &str,
    required: &Required,
    rule: &Rule,
    out: &mut Findings,
) {
    if !held_to(subject).contains(&version) {
        return;
    }
    let root = Pointer::Root;
    let filled = required.filled;
    let interfaces = &subject.parsed.card.interfaces;
    let callable = interfaces.iter().any(|one| one.binding != UNKNOWN_BINDING);
    for name in required.card {
        let told_already = *name == "url" && !callable;
        if !told_already
            && !subject
                .find(name)
                .is_some_and(|(_, value)| stands(value, filled))
        {
            missing(name, &root, rule, out);
        }
    }
    if let Some((spot, provider @ Value::Object(_))) = subject.find("provider") {
        let at = spot.below(&root);
        each(provider, required.provider, &at, filled, rule, out);
    }
    let lists = [
        ("skills", required.skill),
        ("supportedInterfaces", required.interface),
        ("additionalInterfaces", required.additional),
    ];
    for (list, names) in lists {
        let Some((spot, value)) = subject.find(list) else {
            continue;
        };
        let at = spot.below(&root);
        let elements = value.as_array().into_iter().flatten().take(MAX_LIST);
        for (index, element) in elements.enumerate() {
            if element.is_object() {
                each(element, names, &at.index(index), filled, rule, out);
            }
        }
    }
}

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

fn missing(name: &str, at: &Pointer<'_>, rule: &Rule, out: &mut Findings) {
    out.add(rule, at, &format!("no `{name}`"));
    out.want(&format!("`{name}`"));
}

/// Whether a value is present: null and a blank text are not, nor is an empty list if `filled`.
fn stands(value: &Value, filled: bool) -> bool {
    match value {
        Value::Array(list) => !(filled && list.is_empty()),
        Value::String(text) => !text.trim().is_empty(),
        _ => true,
    }
}
