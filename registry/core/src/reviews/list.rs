//! The review queue as a caller sees it.

use a2a_registry_api::{Review, ReviewDetail, ReviewList};
use a2a_registry_domain::review::{ReviewKind, ReviewState, ReviewedChange};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::accounts;
use a2a_registry_store::reviews::{self, ReviewFilter};
use uuid::Uuid;

use crate::context::AppContext;
use crate::entity_tag::RenderedJson;
use crate::error::Result;
use crate::paging::{ListPage, PageRequest};
use crate::reviews::detail::review_detail;
use crate::reviews::notes::editable_review_fields;
use crate::reviews::view::{find_visible_review, own_agent_ids, review_view, review_views};
use crate::visibility::caller::Caller;

/// The assignee that stands for the caller.
const ASSIGNEE_ME: &str = "me";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewListFilter {
    pub state: Option<ReviewState>,
    pub kind: Option<ReviewKind>,
    /// Only reviews of a change of one of these classes.
    pub change_class: Vec<ReviewedChange>,
    pub domain: Option<String>,
    /// Only reviews assigned to the account with this name; `me` for the caller.
    pub assignee: Option<String>,
    /// Only reviews of the caller's own agents.
    pub mine: bool,
}

/// Lists matching reviews, oldest first. A caller who does not see everything gets only those of its own agents.
pub async fn review_list(
    context: &AppContext,
    caller: &Caller,
    wanted: &ReviewListFilter,
    page: &PageRequest,
) -> Result<ReviewList> {
    caller.require_permission(Permission::Read)?;
    let query = format!("reviews {wanted:?}");
    let list = ListPage::new(&context.page_token_signer, caller, &query, page)?;
    let after = list.start_position()?;
    let Some(filter) = build_review_filter(context, caller, wanted).await? else {
        return Ok(ReviewList {
            reviews: Vec::new(),
            next_page_token: None,
        });
    };
    let mut rows = reviews::review_page(&context.store, &filter, after, list.row_limit()).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    Ok(ReviewList {
        reviews: review_views(context, rows).await?,
        next_page_token,
    })
}

/// Builds the row filter; `None` if no row can match.
async fn build_review_filter(
    context: &AppContext,
    caller: &Caller,
    list_filter: &ReviewListFilter,
) -> Result<Option<ReviewFilter>> {
    let account = caller.require_account()?;
    let classes = list_filter
        .change_class
        .iter()
        .map(|change| change.change_class());
    let assignee = match list_filter.assignee.as_deref() {
        Some(ASSIGNEE_ME) => Some(account.id),
        Some(name) => match accounts::account_by_name(&context.store, name).await? {
            Some(account) => Some(account.id),
            None => return Ok(None),
        },
        None => None,
    };
    let agents = match list_filter.mine || !caller.has_permission(Permission::SeeAll) {
        true => Some(own_agent_ids(context, account.id).await?),
        false => None,
    };
    if agents.as_ref().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    Ok(Some(ReviewFilter {
        state: list_filter.state,
        kind: list_filter.kind,
        classes: classes.collect(),
        domain: list_filter.domain.as_deref().map(str::to_lowercase),
        assignee,
        agents,
    }))
}

pub async fn review_show(context: &AppContext, caller: &Caller, id: Uuid) -> Result<ReviewDetail> {
    caller.require_permission(Permission::Read)?;
    let (row, _) = find_visible_review(context, caller, id).await?;
    let review: Review = review_view(context, row.clone()).await?;
    review_detail(context, caller, &row, review).await
}

/// Like [`review_show`], but rendered, with an entity tag for the precondition of a change.
pub async fn render_review(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
) -> Result<RenderedJson> {
    caller.require_permission(Permission::Read)?;
    let (row, _) = find_visible_review(context, caller, id).await?;
    let part = editable_review_fields(&row);
    let review = review_view(context, row.clone()).await?;
    let detail = review_detail(context, caller, &row, review).await?;
    RenderedJson::with_part(&detail, &part)
}
