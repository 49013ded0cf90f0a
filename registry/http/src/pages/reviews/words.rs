//! Labels for reviews on pages.

use a2a_registry_api::Review;
use a2a_registry_domain::review::ReviewKind;

use crate::pages::changes::change_class_badge;
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
