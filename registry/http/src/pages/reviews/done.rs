//! The review that was decided last, which the next page confirms.

use a2a_registry_api::Review;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::reviews::list::review_in_brief;
use a2a_registry_core::text::{self, BLOCK};
use a2a_registry_core::visibility::caller::Caller;
use uuid::Uuid;

use crate::pages::reviews::words;

pub(super) struct DecidedReviewView {
    pub id: String,
    /// State of the reviewed content, and what is served now.
    pub outcome: String,
    /// Reason of the last decision or approval.
    pub reason: String,
}

impl DecidedReviewView {
    /// Loads the view; `None` without an id, and for a review that the caller cannot see.
    pub async fn load(context: &AppContext, caller: &Caller, id: Option<Uuid>) -> Option<Self> {
        let review = review_in_brief(context, caller, id?).await.ok()?;
        Some(Self {
            id: review.id.to_string(),
            reason: text::single_line(last_reason(&review), BLOCK),
            outcome: text::single_line(&words::review_status_sentence(&review), BLOCK),
        })
    }
}

fn last_reason(review: &Review) -> &str {
    let approval = review.approvals.last().map(|one| one.reason.as_str());
    review.reason.as_deref().or(approval).unwrap_or_default()
}
