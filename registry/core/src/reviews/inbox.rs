//! An account's pending tasks: reviews to decide, news of its agents, domains to prove, and hooks that fail.

use a2a_registry_api::limits::MAX_INBOX_ENTRIES;
use a2a_registry_api::{News, Review, Seen, Waiting, WaitingDomain};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::hidden_agents::hidden_agents_by_ids;
use a2a_registry_store::{accounts, decisions, domains, ownership, review_notes, reviews};
use uuid::Uuid;

use crate::agents::hidden_agents::load_hidden_agents;
use crate::commit::decision_maker::POLICY_ACTOR;
use crate::context::AppContext;
use crate::error::Result;
use crate::hooks::views::load_failing_hooks;
use crate::reviews::view::{own_agent_ids, review_views};
use crate::visibility::caller::{Caller, CallerAccount};

pub async fn load_inbox(context: &AppContext, caller: &Caller) -> Result<Waiting> {
    let account = caller.require_permission(Permission::Read)?;
    let now = context.now();
    let row = accounts::accounts_by_ids(&context.store, &[account.id]).await?;
    let seen_at = row.first().and_then(|row| row.news_seen_at);
    Ok(Waiting {
        reviews: reviews_to_decide(context, account).await?,
        news: load_news(context, account, seen_at.unwrap_or(0)).await?,
        domains: domains_to_prove(context, account, now).await?,
        hidden: load_hidden_agents(
            context,
            &own_agent_ids(context, account.id).await?,
            account.has_permission(Permission::SeeAll),
        )
        .await?,
        failing_hooks: load_failing_hooks(context, account).await?,
        seen_at: seen_at.map(Timestamp),
        at: now,
    })
}

/// Builds an account's feed: the reviews that it can decide, and the latest news of its agents, read or not.
pub async fn feed_items(
    context: &AppContext,
    account: &CallerAccount,
) -> Result<(Vec<Review>, Vec<News>)> {
    let reviews = reviews_to_decide(context, account).await?;
    Ok((reviews, load_news(context, account, 0).await?))
}

/// Stores the time up to which the caller has read its news; a time in the future counts as now.
pub async fn mark_news_read(context: &AppContext, caller: &Caller, request: &Seen) -> Result<()> {
    let account = caller.require_permission(Permission::Read)?;
    let write = context.store.begin_write().await?;
    let at = request.at.min(context.now());
    write.mark_news_read(account.id, at.0).await?;
    Ok(write.commit().await?)
}

/// Loads the reviews that the account can decide, the soonest due first, without those from which the account is
/// excluded.
async fn reviews_to_decide(context: &AppContext, account: &CallerAccount) -> Result<Vec<Review>> {
    if !account.has_permission(Permission::Approve) {
        return Ok(Vec::new());
    }
    let four_eyes = context.config().governance.four_eyes;
    let limit = MAX_INBOX_ENTRIES as u64;
    let rows = reviews::reviews_decidable_by(&context.store, account.id, four_eyes, limit).await?;
    review_views(context, rows).await
}

async fn load_news(context: &AppContext, account: &CallerAccount, since: i64) -> Result<Vec<News>> {
    let own = own_agent_ids(context, account.id).await?;
    let limit = MAX_INBOX_ENTRIES as u64;
    let decided = decisions::decisions_on_agents_since(&context.store, &own, since, limit).await?;
    let comments =
        review_notes::comments_on_agents_since(&context.store, &own, since, account.id, limit)
            .await?;
    let ids: Vec<Uuid> = comments.iter().map(|(one, _)| one.author_id).collect();
    let authors = accounts::accounts_by_ids(&context.store, &ids).await?;
    let author = |id: Uuid| authors.iter().find(|one| one.id == id);
    let decided = decided.into_iter().filter(|row| row.actor != account.name);
    let decided = decided.map(|row| News {
        kind: if row.approved { "approved" } else { "rejected" }.to_owned(),
        agent: row.agent_id,
        review: None,
        by: row.actor,
        text: row.reason,
        at: Timestamp(row.at),
    });
    let comments = comments.into_iter().map(|(row, agent)| News {
        kind: "comment".to_owned(),
        agent,
        review: Some(row.review_id),
        by: author(row.author_id).map_or_else(String::new, |one| one.name.clone()),
        text: Some(row.text),
        at: Timestamp(row.at),
    });
    let hidden = hidden_agents_by_ids(&context.store, &own, MAX_INBOX_ENTRIES).await?;
    let hidden = hidden.into_iter().filter(|row| row.since > since);
    let hidden = hidden.map(|row| News {
        kind: "hidden".to_owned(),
        agent: row.agent_id,
        review: None,
        by: POLICY_ACTOR.to_owned(),
        text: None,
        at: Timestamp(row.since),
    });
    let mut news: Vec<News> = decided.chain(comments).chain(hidden).collect();
    news.sort_by_key(|one| std::cmp::Reverse(one.at));
    news.truncate(MAX_INBOX_ENTRIES);
    Ok(news)
}

async fn domains_to_prove(
    context: &AppContext,
    account: &CallerAccount,
    now: Timestamp,
) -> Result<Vec<WaitingDomain>> {
    let limit = MAX_INBOX_ENTRIES as u64;
    let open_challenges =
        ownership::live_challenges_by_account(&context.store, account.id, now.0, limit).await?;
    let ids: Vec<i64> = open_challenges.iter().map(|one| one.domain_id).collect();
    let rows = domains::domains_by_ids(&context.store, &ids).await?;
    let view = |one: &a2a_registry_store::entity::challenge::Model| {
        let row = rows.iter().find(|row| row.id == one.domain_id)?;
        let waits = row.deleted_at.is_none() && row.owner_id != Some(account.id);
        waits.then(|| WaitingDomain {
            domain: row.name.clone(),
            expires: Timestamp(one.expires_at),
        })
    };
    Ok(open_challenges.iter().filter_map(view).collect())
}
