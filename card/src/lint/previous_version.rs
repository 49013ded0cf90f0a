//! Rules that compare a card with its previous version.

use super::target::LintTarget;
use crate::AgentCard;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::rule::Rule;

/// Whether the two cards are equal apart from their versions and signatures.
fn equals_apart_from_version(first: &AgentCard, second: &AgentCard) -> bool {
    let without_version = |card: &AgentCard| AgentCard {
        version: None,
        signatures: Vec::new(),
        ..card.clone()
    };
    without_version(first) == without_version(second)
}

pub(super) fn check_version_only_change(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let Some(previous) = target.context.previous else {
        return;
    };
    let (before, now) = (&previous.card, &target.parsed.card);
    if before.version != now.version && equals_apart_from_version(before, now) {
        let version_text =
            |card: &AgentCard| card.version.clone().unwrap_or_else(|| "none".to_owned());
        let found = format!("{} after {}", version_text(now), version_text(before));
        out.add(
            rule,
            &target.position_of("version").pointer_in(&JsonPointer::Root),
            &found,
        );
    }
}

/// Checks that a changed card has a new version number, because caches may recognise cards by it (1.0 §8.6).
pub(super) fn check_unchanged_version(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let Some(previous) = target.context.previous else {
        return;
    };
    let (before, now) = (&previous.card, &target.parsed.card);
    if let Some(version) = &now.version
        && before.version == now.version
        && !equals_apart_from_version(before, now)
    {
        out.add(
            rule,
            &target.position_of("version").pointer_in(&JsonPointer::Root),
            version,
        );
    }
}
