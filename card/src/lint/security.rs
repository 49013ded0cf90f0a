//! Rules for security schemes and requirements: how they fit together, and their form.

use std::collections::HashSet;

use serde_json::Value;

use super::subject::{Generation, Subject, member};
use crate::SecurityRequirement;
use crate::finding::Findings;
use crate::member::MAX_LIST;
use crate::pointer::Pointer;
use crate::rule::Rule;

/// Names of the member with the requirements, that of 1.0 first.
const MEMBERS: [&str; 2] = ["securityRequirements", "security"];

pub(super) fn undeclared(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    // A converted card may still name a scheme that the version cannot describe: it must not seem to be open.
    if subject.is_converted() {
        return;
    }
    let card = &subject.parsed.card;
    let root = Pointer::Root;
    let schemes = card.security_schemes.iter();
    let declared: HashSet<&str> = schemes.map(|scheme| scheme.name.as_str()).collect();
    let mut report = |requirements: &[SecurityRequirement], at: &Pointer<'_>| {
        let schemes = requirements.iter().flat_map(|r| &r.schemes);
        for (name, _) in schemes.filter(|(name, _)| !declared.contains(name.as_str())) {
            out.add(rule, at, name);
        }
    };
    let found = MEMBERS.into_iter().find_map(|name| subject.find(name));
    let spot = found.map_or_else(|| subject.spot("security"), |(spot, _)| spot);
    report(&card.security, &spot.below(&root));
    subject.each_skill(|skill, at| report(&skill.security, at));
}

pub(super) fn unrequired(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let card = &subject.parsed.card;
    let asked = !card.security.is_empty() || card.skills.iter().any(|s| !s.security.is_empty());
    if !card.security_schemes.is_empty() && !asked {
        let schemes = card.security_schemes.iter();
        let names: Vec<&str> = schemes.map(|scheme| scheme.name.as_str()).collect();
        let spot = subject.spot("securitySchemes");
        out.add(rule, &spot.below(&Pointer::Root), &names.join(", "));
    }
}

/// An extended card is for authenticated callers, so a scheme is declared.
pub(super) fn extended_card(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let card = &subject.parsed.card;
    if card.capabilities.extended_agent_card
        && card.security_schemes.is_empty()
        && card.security.is_empty()
    {
        out.add(rule, &Pointer::Root, "no security scheme");
    }
}

pub(super) fn name(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let (wanted, other) = match Generation::of(subject) {
        Some(Generation::V1) => ("securityRequirements", "security"),
        Some(Generation::V0) => ("security", "securityRequirements"),
        None => return,
    };
    let root = Pointer::Root;
    if let Some((spot, value)) = subject.find(other)
        && subject.find(wanted).is_none()
    {
        out.add_value(rule, &spot.below(&root), value);
    }
    if let Some((spot, Value::Array(skills))) = subject.find("skills") {
        let list = spot.below(&root);
        for (index, skill) in skills.iter().take(MAX_LIST).enumerate() {
            if let Some(value) = member(skill, other)
                && member(skill, wanted).is_none()
            {
                out.add_value(rule, &list.index(index).name(other), value);
            }
        }
    }
}

/// The requirements have the form of the card's version: 1.0 puts the schemes into `schemes`.
pub(super) fn form(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let Some(generation) = Generation::of(subject) else {
        return;
    };
    let root = Pointer::Root;
    for (spot, value) in MEMBERS.into_iter().filter_map(|name| subject.find(name)) {
        let at = spot.below(&root);
        let requirements = value.as_array().into_iter().flatten().take(MAX_LIST);
        for (index, requirement) in requirements.enumerate() {
            let Some(names) = requirement.as_object().filter(|names| !names.is_empty()) else {
                continue;
            };
            let wrapped = names.get("schemes").is_some_and(Value::is_object);
            if wrapped != (generation == Generation::V1) {
                out.add_value(rule, &at.index(index), requirement);
            }
        }
    }
}
