//! Rules for the members that each version requires.

use serde_json::Value;

use super::target::{LintTarget, member_in_either_spelling};
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::MAX_LIST_ELEMENTS;
use crate::rule::Rule;
use crate::{CardFamily, UNKNOWN_BINDING};

/// Members that a version requires, except for an address, which `card.no-address` reports in every version.
struct RequiredMembers {
    card_members: &'static [&'static str],
    skill_members: &'static [&'static str],
    provider_members: &'static [&'static str],
    interface_members: &'static [&'static str],
    additional_interface_members: &'static [&'static str],
    nonempty_lists: bool,
}

const REQUIRED_0_1: RequiredMembers = RequiredMembers {
    card_members: &["url", "version", "capabilities", "skills"],
    skill_members: &[],
    provider_members: &["organization"],
    interface_members: &[],
    additional_interface_members: &[],
    nonempty_lists: false,
};

const REQUIRED_0_2: RequiredMembers = RequiredMembers {
    card_members: &[
        "url",
        "description",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ],
    skill_members: &["description", "tags"],
    provider_members: &["organization", "url"],
    interface_members: &[],
    additional_interface_members: &["url", "transport"],
    nonempty_lists: false,
};

const REQUIRED_0_3: RequiredMembers = RequiredMembers {
    card_members: &[
        "url",
        "description",
        "version",
        "protocolVersion",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ],
    ..REQUIRED_0_2
};

const REQUIRED_1_0: RequiredMembers = RequiredMembers {
    card_members: &[
        "description",
        "version",
        "supportedInterfaces",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ],
    interface_members: &["url", "protocolBinding", "protocolVersion"],
    additional_interface_members: &[],
    nonempty_lists: true,
    ..REQUIRED_0_2
};

pub(super) fn check_required_0_1(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    check_required_members(target, "0.1", &REQUIRED_0_1, rule, out);
}

pub(super) fn check_required_0_2(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    check_required_members(target, "0.2", &REQUIRED_0_2, rule, out);
}

pub(super) fn check_required_0_3(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    check_required_members(target, "0.3", &REQUIRED_0_3, rule, out);
}

pub(super) fn check_required_1_0(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    check_required_members(target, "1.0", &REQUIRED_1_0, rule, out);
}

/// The versions whose requirements apply to the card: the version of its family, else the declared one.
pub(super) fn applicable_versions(target: &LintTarget<'_>) -> &'static [&'static str] {
    match target.parsed.family {
        CardFamily::V0_1 | CardFamily::Undated => &["0.1"],
        CardFamily::V0_2 => &["0.2"],
        CardFamily::V0_3 => &["0.3"],
        // The agent of a card that a registry converted to 0.3 may support only 1.0.
        CardFamily::Flat1 if target.is_converted() => &["0.3"],
        CardFamily::V1_0 | CardFamily::Flat1 | CardFamily::Snake1 | CardFamily::OtherInterfaces => {
            &["1.0"]
        }
        CardFamily::Dual => &["0.3", "1.0"],
        CardFamily::Snake0 | CardFamily::NoAddress | CardFamily::Nested => {
            let declared = target.find_member("protocolVersion");
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

fn check_required_members(
    target: &LintTarget<'_>,
    version: &str,
    required: &RequiredMembers,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    if !applicable_versions(target).contains(&version) {
        return;
    }
    let root = JsonPointer::Root;
    let nonempty_lists = required.nonempty_lists;
    let interfaces = &target.parsed.card.interfaces;
    let is_callable = interfaces.iter().any(|one| one.binding != UNKNOWN_BINDING);
    for name in required.card_members {
        let is_already_reported = *name == "url" && !is_callable;
        if !is_already_reported
            && !target
                .find_member(name)
                .is_some_and(|(_, value)| is_value_present(value, nonempty_lists))
        {
            report_missing_member(name, &root, rule, out);
        }
    }
    if let Some((position, provider @ Value::Object(_))) = target.find_member("provider") {
        let pointer = position.pointer_in(&root);
        report_missing_members(
            provider,
            required.provider_members,
            &pointer,
            nonempty_lists,
            rule,
            out,
        );
    }
    let lists = [
        ("skills", required.skill_members),
        ("supportedInterfaces", required.interface_members),
        (
            "additionalInterfaces",
            required.additional_interface_members,
        ),
    ];
    for (list, names) in lists {
        let Some((position, value)) = target.find_member(list) else {
            continue;
        };
        let pointer = position.pointer_in(&root);
        let elements = value
            .as_array()
            .into_iter()
            .flatten()
            .take(MAX_LIST_ELEMENTS);
        for (index, element) in elements.enumerate() {
            if element.is_object() {
                report_missing_members(
                    element,
                    names,
                    &pointer.element(index),
                    nonempty_lists,
                    rule,
                    out,
                );
            }
        }
    }
}

fn report_missing_members(
    object: &Value,
    names: &[&str],
    pointer: &JsonPointer<'_>,
    nonempty_lists: bool,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    for name in names {
        if !member_in_either_spelling(object, name)
            .is_some_and(|value| is_value_present(value, nonempty_lists))
        {
            report_missing_member(name, pointer, rule, out);
        }
    }
}

fn report_missing_member(
    name: &str,
    pointer: &JsonPointer<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    out.add(rule, pointer, &format!("no `{name}`"));
    out.set_last_expected(&format!("`{name}`"));
}

/// Whether a value is present: null and a blank text are not, nor is an empty list if `nonempty_lists`.
fn is_value_present(value: &Value, nonempty_lists: bool) -> bool {
    match value {
        Value::Array(list) => !(nonempty_lists && list.is_empty()),
        Value::String(text) => !text.trim().is_empty(),
        _ => true,
    }
}
