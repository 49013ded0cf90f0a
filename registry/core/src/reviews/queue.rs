//! The queue of reviews: which of them a caller sees.

use a2a_registry_api::{Review, ReviewDetail, ReviewList};
use a2a_registry_domain::review::{ReviewKind, ReviewState, ReviewedChange};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::accounts;
use a2a_registry_store::reviews::{self, ReviewFilter};
use uuid::Uuid;

use crate::context::Context;
use crate::error::Result;
use crate::memory::agents::RenderedJson;
use crate::paging::{ListPage, PageRequest};
use crate::reviews::detail::review_detail;
use crate::reviews::notes::edited;
use crate::reviews::view::{own_agents, review_view, review_visible, views};
use crate::visibility::caller::Caller;

/// The assignee that stands for the caller.
const ME: &str = "me";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewsWanted {
    pub state: Option<ReviewState>,
    pub kind: Option<ReviewKind>,
    /// Of a change of one of these classes.
    pub change_class: Vec<ReviewedChange>,
    pub domain: Option<String>,
    /// Assigned to the account with this name; `me` for the caller.
    pub assignee: Option<String>,
    /// Only of the caller's own agents.
    pub mine: bool,
}

/// Lists reviews, oldest first: all that match, or those of own agents for a caller who does not see everything.
pub async fn review_list(
    context: &Context,
    caller: &Caller,
    wanted: &ReviewsWanted,
    page: &PageRequest,
) -> Result<ReviewList> {
    caller.demand(Permission::Read)?;
    let query = format!("reviews {wanted:?}");
    let list = ListPage::new(&context.signer, caller, &query, page)?;
    let after = list.start()?;
    let Some(filter) = filter(context, caller, wanted).await? else {
        return Ok(ReviewList {
            reviews: Vec::new(),
            next_page_token: None,
        });
    };
    let mut rows = reviews::review_page(&context.store, &filter, after, list.limit()).await?;
    let next_page_token = list.cut(&mut rows, |last| last.id);
    Ok(ReviewList {
        reviews: views(context, rows).await?,
        next_page_token,
    })
}

/// The filter for the rows; `None` if there can be none.
async fn filter(
    context: &Context,
    caller: &Caller,
    wanted: &ReviewsWanted,
) -> Result<Option<ReviewFilter>> {
    let account = caller.account()?;
    let classes = wanted.change_class.iter().map(|change| change.class());
    let assignee = match wanted.assignee.as_deref() {
        Some(ME) => Some(account.id),
        Some(name) => match accounts::account_by_name(&context.store, name).await? {
            Some(account) => Some(account.id),
            None => return Ok(None),
        },
        None => None,
    };
    let agents = match wanted.mine || !caller.may(Permission::SeeAll) {
        true => Some(own_agents(context, account.id).await?),
        false => None,
    };
    if agents.as_ref().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    Ok(Some(ReviewFilter {
        state: wanted.state,
        kind: wanted.kind,
        classes: classes.collect(),
        domain: wanted.domain.as_deref().map(str::to_lowercase),
        assignee,
        agents,
    }))
}

pub async fn review_show(context: &Context, caller: &Caller, id: Uuid) -> Result<ReviewDetail> {
    caller.demand(Permission::Read)?;
    let (row, _) = review_visible(context, caller, id).await?;
    let review: Review = review_view(context, row.clone()).await?;
    review_detail(context, caller, &row, review).await
}

/// As [`review_show`], rendered, with an entity tag for the precondition of a change.
pub async fn review_rendered(context: &Context, caller: &Caller, id: Uuid) -> Result<RenderedJson> {
    caller.demand(Permission::Read)?;
    let (row, _) = review_visible(context, caller, id).await?;
    let part = edited(&row);
    let review = review_view(context, row.clone()).await?;
    let detail = review_detail(context, caller, &row, review).await?;
    RenderedJson::with_part(&detail, &part)
}
