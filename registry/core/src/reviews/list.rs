//! The review queue as a caller sees it.

use a2a_registry_api::{Review, ReviewDetail, ReviewList};
use a2a_registry_domain::review::{ReviewKind, ReviewState, ReviewedChange};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::review;
use a2a_registry_store::reviews::{self, ReviewFilter};
use a2a_registry_store::{accounts, versions};
use uuid::Uuid;

use crate::context::AppContext;
use crate::entity_tag::RenderedJson;
use crate::error::Result;
use crate::paging::{ListPage, PageRequest, resolve_page_size};
use crate::reviews::detail::review_detail;
use crate::reviews::notes::editable_review_fields;
use crate::reviews::reviewed_card::ReviewedCardFilter;
use crate::reviews::view::{find_visible_review, own_agent_ids, review_view, review_views};
use crate::visibility::caller::Caller;

/// The assignee that stands for the caller.
const ASSIGNEE_ME: &str = "me";
/// Number of cards that are read at once to find those that a filter selects.
const CARDS_PER_READ: u64 = 200;
/// Maximum number of cards that one request reads; its list goes on with the next page.
const MAX_CARDS_READ: u64 = 2_000;
/// Maximum number of reviews among which the next one is looked for.
const NEXT_CANDIDATES: u64 = 500;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewListFilter {
    pub state: Option<ReviewState>,
    pub kind: Option<ReviewKind>,
    /// Only reviews of a change of one of these classes.
    pub change_class: Vec<ReviewedChange>,
    pub domain: Option<String>,
    /// Only reviews of cards whose source was registered by the account with this name.
    pub submitter: Option<String>,
    /// Only reviews assigned to the account with this name; `me` for the caller.
    pub assignee: Option<String>,
    /// Only reviews of the caller's own agents.
    pub mine: bool,
    /// Only reviews of cards that say this.
    pub card: ReviewedCardFilter,
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
    let size = resolve_page_size(page.page_size)?;
    let (rows, resume_after) =
        find_matching_rows(context, &filter, &wanted.card, after, size).await?;
    let signer = &context.page_token_signer;
    Ok(ReviewList {
        reviews: review_views(context, rows).await?,
        next_page_token: resume_after.and_then(|id| signer.sign_position(&query, caller, &id)),
    })
}

/// Reads rows above `after` until `size` of them match, or as many were read as one request may read. Returns them,
/// and after which row to go on; `None` if no further row can match.
async fn find_matching_rows(
    context: &AppContext,
    filter: &ReviewFilter,
    card_filter: &ReviewedCardFilter,
    after: Option<Uuid>,
    size: usize,
) -> Result<(Vec<review::Model>, Option<Uuid>)> {
    let store = &context.store;
    if card_filter.is_empty() {
        let mut rows = reviews::review_page(store, filter, after, size as u64 + 1).await?;
        let has_more = rows.len() > size;
        rows.truncate(size);
        let last = rows.last().filter(|_| has_more).map(|row| row.id);
        return Ok((rows, last));
    }
    let (mut found, mut position) = (Vec::new(), after);
    for _ in 0..MAX_CARDS_READ / CARDS_PER_READ {
        let rows = reviews::review_page(store, filter, position, CARDS_PER_READ).await?;
        let is_end = (rows.len() as u64) < CARDS_PER_READ;
        let ids: Vec<Uuid> = rows.iter().map(|row| row.version_id).collect();
        let cards = versions::versions_by_ids(store, &ids).await?;
        for row in rows {
            if found.len() == size {
                return Ok((found, position));
            }
            position = Some(row.id);
            let card = cards.iter().find(|card| card.id == row.version_id);
            if card.is_some_and(|card| card_filter.matches(card)) {
                found.push(row);
            }
        }
        if is_end {
            return Ok((found, None));
        }
    }
    Ok((found, position))
}

/// Counts the reviews by state that the filter selects apart from its state; those that it selects by their cards are
/// not counted.
pub async fn count_reviews(
    context: &AppContext,
    caller: &Caller,
    wanted: &ReviewListFilter,
) -> Result<Vec<(ReviewState, u64)>> {
    caller.require_permission(Permission::Read)?;
    let wanted = ReviewListFilter {
        state: None,
        ..wanted.clone()
    };
    let Some(filter) = build_review_filter(context, caller, &wanted).await? else {
        return Ok(Vec::new());
    };
    let rows = reviews::count_reviews_by_state(&context.store, &filter).await?;
    let known = rows.iter().filter_map(|row| {
        let state = row.state.parse::<ReviewState>().ok()?;
        Some((state, u64::try_from(row.count).unwrap_or(0)))
    });
    Ok(known.collect())
}

/// Finds the next open review that the filter selects and the caller can decide: the first one after that review, else
/// the first one of all.
pub async fn find_next_review(
    context: &AppContext,
    caller: &Caller,
    wanted: &ReviewListFilter,
    decided: Uuid,
) -> Result<Option<Uuid>> {
    let account = caller.require_permission(Permission::Read)?;
    if !caller.has_permission(Permission::Approve) {
        return Ok(None);
    }
    let wanted = ReviewListFilter {
        state: Some(ReviewState::Open),
        ..wanted.clone()
    };
    let Some(filter) = build_review_filter(context, caller, &wanted).await? else {
        return Ok(None);
    };
    let four_eyes = context.config().governance.four_eyes;
    let decidable =
        reviews::reviews_decidable_by(&context.store, account.id, four_eyes, NEXT_CANDIDATES)
            .await?;
    for after in [Some(decided), None] {
        let size = usize::try_from(NEXT_CANDIDATES).unwrap_or(usize::MAX);
        let (rows, _) = find_matching_rows(context, &filter, &wanted.card, after, size).await?;
        let mut rows = rows.iter().filter(|row| row.id != decided);
        if let Some(next) = rows.find(|row| decidable.iter().any(|one| one.id == row.id)) {
            return Ok(Some(next.id));
        }
    }
    Ok(None)
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
        submitter: list_filter.submitter.clone(),
        assignee,
        agents,
    }))
}

/// A review without the details of its card.
pub async fn review_in_brief(context: &AppContext, caller: &Caller, id: Uuid) -> Result<Review> {
    caller.require_permission(Permission::Read)?;
    let (row, _) = find_visible_review(context, caller, id).await?;
    review_view(context, row).await
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
