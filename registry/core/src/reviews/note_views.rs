//! Comments on a review and the reports that it collects, as a caller sees them.

use a2a_registry_api::{ReportView, ReviewComment};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::review;
use a2a_registry_store::{accounts, review_notes};
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::Result;
use crate::visibility::caller::Caller;

#[derive(Debug, Default)]
pub(super) struct ReviewNotes {
    pub(super) comments: Vec<ReviewComment>,
    pub(super) reports: Vec<ReportView>,
}

impl ReviewNotes {
    /// Loads comments and reports. Reporters and their contacts are only for callers who see everything.
    pub(super) async fn load(
        context: &AppContext,
        caller: &Caller,
        row: &review::Model,
    ) -> Result<Self> {
        let comments = review_notes::comments_by_review(&context.store, row.id).await?;
        let reports = review_notes::reports_by_review(&context.store, row.id).await?;
        let authors = comments.iter().map(|one| one.author_id);
        let reporters = reports.iter().filter_map(|one| one.account_id);
        let ids: Vec<Uuid> = authors.chain(reporters).collect();
        let accounts = accounts::accounts_by_ids(&context.store, &ids).await?;
        let name = |id: Uuid| {
            let mut accounts = accounts.iter();
            accounts
                .find(|one| one.id == id)
                .map(|one| one.name.clone())
        };
        let sees_all = caller.has_permission(Permission::SeeAll);
        let comment = |one: a2a_registry_store::entity::review_comment::Model| ReviewComment {
            id: one.id,
            author: name(one.author_id).unwrap_or_default(),
            text: one.text,
            at: Timestamp(one.at),
        };
        let report = |one: a2a_registry_store::entity::agent_report::Model| ReportView {
            reason: one.reason,
            at: Timestamp(one.at),
            reporter: one.account_id.filter(|_| sees_all).and_then(name),
            contact: one.contact.filter(|_| sees_all),
        };
        Ok(Self {
            comments: comments.into_iter().map(comment).collect(),
            reports: reports.into_iter().map(report).collect(),
        })
    }
}
