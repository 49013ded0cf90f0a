//! Labels for reviews on pages.

use a2a_registry_api::Review;
use a2a_registry_core::text::{self, TEASER};
use a2a_registry_domain::review::{ReviewKind, ReviewState};

use crate::pages::changes::change_class_badge;
use crate::pages::domains::register::to_sentence;
use crate::pages::trust::Badge;

/// Badge for the change class of a review, or for its kind if there is no class.
pub(crate) fn review_change_badge(review: &Review) -> Badge {
    let plain = |label: &str, meaning: &str, tone| Badge {
        label: label.to_owned(),
        meaning: meaning.to_owned(),
        tone,
        link: None,
    };
    if review.kind == ReviewKind::Report {
        return plain("report", "This agent was reported.", "warn");
    }
    if review.kind == ReviewKind::BreakGlass {
        let meaning = "One account has approved this alone. Others must confirm it.";
        return plain("break-glass", meaning, "bad");
    }
    if review.kind == ReviewKind::Recertification {
        let meaning = "The approval of the served content is about to end.";
        return plain("recertification", meaning, "warn");
    }
    match &review.change_class {
        Some(class) => change_class_badge(class),
        None => plain(
            "first card",
            "No card of this agent has been approved before.",
            "plain",
        ),
    }
}

/// Number of approvals, and the number required.
pub(crate) fn approval_count_text(review: &Review) -> String {
    let counting = review.approvals.iter().filter(|one| one.counts).count();
    format!("{counting} of {}", review.approvals_needed)
}

/// Sentence about the state of the reviewed content, and what is served now.
pub(crate) fn review_status_sentence(review: &Review) -> String {
    let (subject, served) = (review.subject_phrase(), review.served_clause());
    if review.state == ReviewState::Open {
        return to_sentence(&format!("{subject} waits for a decision{served}"));
    }
    to_sentence(&format!("{subject} is {}{served}", review.state))
}

/// What the reviewed card changes, such as `changes skills, version`; empty for a first card.
pub(crate) fn changed_parts_text(review: &Review) -> String {
    let changed = review.card.as_ref().map_or(&[][..], |card| &card.changed);
    match changed.is_empty() {
        true => String::new(),
        false => text::single_line(
            &format!("changes {}", changed.join(", ").replace('_', " ")),
            TEASER,
        ),
    }
}

/// Number of errors and warnings of the reviewed card; empty if there are none.
pub(crate) fn finding_count_text(review: &Review) -> String {
    let Some(card) = &review.card else {
        return String::new();
    };
    let phrase = |count: u32, one: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {one}s")),
    };
    let parts = [
        phrase(card.errors, "error"),
        phrase(card.warnings, "warning"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
