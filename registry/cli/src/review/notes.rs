//! Notes about a review by people, and its card's own description, in lines.

use a2a_registry_api::ReviewDetail;
use a2a_registry_domain::review::{ReviewKind, ReviewState};

use crate::command_error::CommandError;
use crate::console::Console;

/// Prints the notes. Empty parts are omitted.
pub fn print_review_details(console: &Console, detail: &ReviewDetail) -> Result<(), CommandError> {
    if let Some(description) = &detail.description {
        console.print_line(&format!("description: {description}"))?;
    }
    for skill in &detail.skills {
        let about = skill.description.as_deref().unwrap_or_default();
        console.print_line(&format!("skill {}: {about}", skill.name))?;
    }
    let review = &detail.review;
    for approval in &review.approvals {
        let counts = if approval.counts {
            ""
        } else {
            " (does not count)"
        };
        console.print_line(&format!(
            "approved by {} at {}{counts}: {}",
            approval.account,
            approval.at.to_readable(),
            approval.reason
        ))?;
    }
    if review.approvals_needed > 1 {
        console.print_line(&format!("approvals needed: {}", review.approvals_needed))?;
    }
    for policy in &detail.policies {
        let (effect, id, mode) = (&policy.effect, &policy.id, &policy.mode);
        console.print_line(&format!("policy {id} ({mode}): {effect}"))?;
    }
    if review.kind == ReviewKind::Report && review.state == ReviewState::Open {
        console.print_line(
            "decision: `reject` puts the agent on hold (operator), `approve` leaves it as it is",
        )?;
    }
    print_review_activity(console, detail)
}

/// Reports, earlier decisions and comments.
fn print_review_activity(console: &Console, detail: &ReviewDetail) -> Result<(), CommandError> {
    for report in &detail.reports {
        let by = report.reporter.as_deref().unwrap_or("somebody");
        let contact = report.contact.as_ref();
        let contact = contact.map_or_else(String::new, |contact| format!(" ({contact})"));
        console.print_line(&format!(
            "reported by {by}{contact} at {}: {}",
            report.at.to_readable(),
            report.reason
        ))?;
    }
    for earlier in &detail.earlier {
        let decision = if earlier.approved {
            "approved"
        } else {
            "rejected"
        };
        let same_content_text = if earlier.same_content {
            ", the same content"
        } else {
            ""
        };
        let reason = earlier.reason.as_deref().unwrap_or_default();
        console.print_line(&format!(
            "earlier: {decision} by {} ({}{same_content_text}) at {}: {reason}",
            earlier.by,
            earlier.rule,
            earlier.at.to_readable()
        ))?;
    }
    for comment in &detail.comments {
        console.print_line(&format!(
            "comment by {} at {}: {}",
            comment.author,
            comment.at.to_readable(),
            comment.text
        ))?;
    }
    Ok(())
}
