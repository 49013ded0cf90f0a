//! Rules for security schemes and requirements: whether they match, and their form.

use std::collections::HashSet;

use serde_json::Value;

use super::target::{LintTarget, ProtocolGeneration, member_in_either_spelling};
use crate::SecurityRequirement;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::MAX_LIST_ELEMENTS;
use crate::rule::Rule;

/// Names of the member with the requirements, the one of 1.0 first.
const REQUIREMENT_MEMBERS: [&str; 2] = ["securityRequirements", "security"];

pub(super) fn check_undeclared_schemes(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    // A converted card may still name a scheme that the version cannot describe, so that it does not seem to be open.
    if target.is_converted() {
        return;
    }
    let card = &target.parsed.card;
    let root = JsonPointer::Root;
    let schemes = card.security_schemes.iter();
    let declared_names: HashSet<&str> = schemes.map(|scheme| scheme.name.as_str()).collect();
    let mut report = |requirements: &[SecurityRequirement], pointer: &JsonPointer<'_>| {
        let schemes = requirements.iter().flat_map(|r| &r.schemes);
        for (name, _) in schemes.filter(|(name, _)| !declared_names.contains(name.as_str())) {
            out.add(rule, pointer, name);
        }
    };
    let found_member = REQUIREMENT_MEMBERS
        .into_iter()
        .find_map(|name| target.find_member(name));
    let position = found_member.map_or_else(|| target.position_of("security"), |(spot, _)| spot);
    report(&card.security, &position.pointer_in(&root));
    target.for_each_skill(|skill, pointer| report(&skill.security, pointer));
}

pub(super) fn check_unrequired_schemes(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let card = &target.parsed.card;
    let has_requirements =
        !card.security.is_empty() || card.skills.iter().any(|s| !s.security.is_empty());
    if !card.security_schemes.is_empty() && !has_requirements {
        let schemes = card.security_schemes.iter();
        let names: Vec<&str> = schemes.map(|scheme| scheme.name.as_str()).collect();
        let position = target.position_of("securitySchemes");
        out.add(
            rule,
            &position.pointer_in(&JsonPointer::Root),
            &names.join(", "),
        );
    }
}

/// Checks that a card with an extended card declares a scheme: extended cards are for authenticated callers.
pub(super) fn check_extended_card_security(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let card = &target.parsed.card;
    if card.capabilities.extended_agent_card
        && card.security_schemes.is_empty()
        && card.security.is_empty()
    {
        out.add(rule, &JsonPointer::Root, "no security scheme");
    }
}

pub(super) fn check_requirement_member_name(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let (expected_name, other_name) = match ProtocolGeneration::from_target(target) {
        Some(ProtocolGeneration::V1) => ("securityRequirements", "security"),
        Some(ProtocolGeneration::V0) => ("security", "securityRequirements"),
        None => return,
    };
    let root = JsonPointer::Root;
    if let Some((position, value)) = target.find_member(other_name)
        && target.find_member(expected_name).is_none()
    {
        out.add_with_value(rule, &position.pointer_in(&root), value);
    }
    if let Some((position, Value::Array(skills))) = target.find_member("skills") {
        let skills_pointer = position.pointer_in(&root);
        for (index, skill) in skills.iter().take(MAX_LIST_ELEMENTS).enumerate() {
            if let Some(value) = member_in_either_spelling(skill, other_name)
                && member_in_either_spelling(skill, expected_name).is_none()
            {
                out.add_with_value(
                    rule,
                    &skills_pointer.element(index).member(other_name),
                    value,
                );
            }
        }
    }
}

/// Checks that the requirements have the form of the card's version: 1.0 puts the schemes into `schemes`.
pub(super) fn check_requirement_format(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let Some(generation) = ProtocolGeneration::from_target(target) else {
        return;
    };
    let root = JsonPointer::Root;
    for (position, value) in REQUIREMENT_MEMBERS
        .into_iter()
        .filter_map(|name| target.find_member(name))
    {
        let pointer = position.pointer_in(&root);
        let requirements = value
            .as_array()
            .into_iter()
            .flatten()
            .take(MAX_LIST_ELEMENTS);
        for (index, requirement) in requirements.enumerate() {
            let Some(names) = requirement.as_object().filter(|names| !names.is_empty()) else {
                continue;
            };
            let is_wrapped = names.get("schemes").is_some_and(Value::is_object);
            if is_wrapped != (generation == ProtocolGeneration::V1) {
                out.add_with_value(rule, &pointer.element(index), requirement);
            }
        }
    }
}
