//! Reviews in the words of pages.

use a2a_registry_api::Review;
use a2a_registry_domain::review::ReviewKind;

use crate::pages::changes::class_badge;
use crate::pages::trust::Badge;

/// The class of a review's change, or the kind of a review without one.
pub(crate) fn change_badge(review: &Review) -> Badge {
    let plain = |label: &str, meaning: &str, tone| Badge {
        label: label.to_owned(),
        meaning: meaning.to_owned(),
        tone,
        link: None,
    };
    if review.kind == ReviewKind::Report {
        return plain("report", "Somebody has reported this agent.", "warn");
    }
    if review.kind == ReviewKind::BreakGlass {
        let meaning = "One account has approved this alone; others confirm it or not.";
        return plain("break-glass", meaning, "bad");
    }
    if review.kind == ReviewKind::Recertification {
        let meaning = "The approval of what is served ends.";
        return plain("recertification", meaning, "warn");
    }
    match &review.change_class {
        Some(class) => class_badge(class),
        None => plain(
            "first card",
            "No card of this agent was approved before.",
            "plain",
        ),
    }
}

/// The number of approvals, and how many are needed.
pub(crate) fn approvals(review: &Review) -> String {
    let counting = review.approvals.iter().filter(|one| one.counts).count();
    format!("{counting} of {}", review.approvals_needed)
}
