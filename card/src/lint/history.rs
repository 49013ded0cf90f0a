//! Rules for a card and its previous version.

use super::subject::Subject;
use crate::AgentCard;
use crate::finding::Findings;
use crate::pointer::Pointer;
use crate::rule::Rule;

/// Whether the two cards are equal apart from their versions and signatures.
fn same_text(one: &AgentCard, other: &AgentCard) -> bool {
    let text = |card: &AgentCard| AgentCard {
        version: None,
        signatures: Vec::new(),
        ..card.clone()
    };
    text(one) == text(other)
}

pub(super) fn version_alone(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let Some(previous) = subject.context.previous else {
        return;
    };
    let (before, now) = (&previous.card, &subject.parsed.card);
    if before.version != now.version && same_text(before, now) {
        let version_text =
            |card: &AgentCard| card.version.clone().unwrap_or_else(|| "none".to_owned());
        let found = format!("{} after {}", version_text(now), version_text(before));
        out.add(rule, &subject.spot("version").below(&Pointer::Root), &found);
    }
}

/// A changed card has a new version number, because caches may recognise cards by it (1.0 §8.6).
pub(super) fn version_kept(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let Some(previous) = subject.context.previous else {
        return;
    };
    let (before, now) = (&previous.card, &subject.parsed.card);
    if let Some(version) = &now.version
        && before.version == now.version
        && !same_text(before, now)
    {
        out.add(
            rule,
            &subject.spot("version").below(&Pointer::Root),
            version,
        );
    }
}
