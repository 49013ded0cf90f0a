//! The feed of an account: its reviews to decide, and decisions and comments on its agents, as Atom (RFC 4287).
//!
//! A feed reader sends no token, so the address of a feed contains its own secret. It opens the feed and nothing else,
//! and ends with its account.

use std::collections::HashMap;

use a2a_registry_api::{CreatedFeed, News, Review};
use a2a_registry_core::accounts::authentication::{authenticate_feed, hash, session_secret};
use a2a_registry_core::commit::ledger::Ledger;
use a2a_registry_core::commit::publish::commit_ledger;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::reviews::waiting::told;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::entity::feed;
use a2a_registry_store::feeds;
use askama::Template;
use serde_json::json;
use uuid::Uuid;

#[derive(Template)]
#[template(path = "feed.xml")]
pub(crate) struct FeedDocument {
    id: Uuid,
    account: String,
    registry: String,
    updated: String,
    entries: Vec<Entry>,
}

struct Entry {
    id: String,
    title: String,
    link: String,
    at: Timestamp,
    updated: String,
    by: String,
    text: String,
}

/// Gives the caller a feed, or a new address for the existing one, which makes the old address invalid. It never shows
/// more than the caller may see at the time.
pub async fn feed_renew(context: &Context, caller: &Caller) -> Result<CreatedFeed> {
    let account = caller.demand(Permission::Read)?;
    let secret = session_secret(context);
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let now = ledger.now();
    let row = feed::Model {
        account_id: account.id,
        hash: hash(&secret),
        created_at: now.0,
        scopes: Some(account.scopes.to_string()),
    };
    write.feed_put(row).await?;
    let data = json!({"account": account.name});
    ledger.event(EventKind::FeedCreated, account.id, &account.name, data);
    commit_ledger(context, write, ledger).await?;
    Ok(CreatedFeed {
        url: format!("{}/feeds/{secret}", context.config.public_url()),
        created_at: now,
    })
}

pub async fn feed_revoke(context: &Context, caller: &Caller) -> Result<()> {
    let account = caller.demand(Permission::Read)?;
    let write = context.store.write().await?;
    if !write.feed_delete(account.id).await? {
        return Err(AppError::not_found("You have no feed."));
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let data = json!({"account": account.name});
    ledger.event(EventKind::FeedRevoked, account.id, &account.name, data);
    commit_ledger(context, write, ledger).await
}

/// Since when the caller's feed has its address; `None` without one.
pub(crate) async fn feed_since(context: &Context, caller: &Caller) -> Result<Option<Timestamp>> {
    let account = caller.demand(Permission::Read)?;
    let row = feeds::feed_of(&context.store, account.id).await?;
    Ok(row.map(|row| Timestamp(row.created_at)))
}

pub(crate) async fn feed_read(context: &Context, secret: &str) -> Result<FeedDocument> {
    let caller = authenticate_feed(context, secret).await?;
    let caller = caller.ok_or_else(AppError::no_address)?;
    let account = caller.demand(Permission::Read)?;
    let (reviews, news) = told(context, account).await?;
    let ids: Vec<Uuid> = news.iter().map(|one| one.agent).collect();
    let domains: HashMap<Uuid, String> = agents_by_ids(&context.store, &ids)
        .await?
        .into_iter()
        .map(|agent| (agent.id, agent.domain))
        .collect();
    let registry = context.config.public_url();
    let reviews = reviews.iter().map(|review| to_decide(&registry, review));
    let news = news.iter().map(|news| new(&registry, news, &domains));
    let mut entries: Vec<Entry> = reviews.chain(news).collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    let updated = entries.first().map_or(Timestamp(0), |entry| entry.at);
    Ok(FeedDocument {
        id: account.id,
        account: line(&account.name),
        registry,
        updated: updated.to_rfc3339(),
        entries,
    })
}

fn to_decide(registry: &str, review: &Review) -> Entry {
    let link = format!("{registry}/reviews/{}", review.id);
    let named = format!("{} at {}", review.name, review.domain);
    Entry {
        id: link.clone(),
        title: line(&format!("Review to decide: {named}")),
        link,
        at: review.created_at,
        updated: review.created_at.to_rfc3339(),
        by: review.submitter.as_deref().map_or_else(String::new, line),
        text: match review.due {
            Some(due) => format!("Due {}", due.to_rfc3339()),
            None => String::new(),
        },
    }
}

fn new(registry: &str, news: &News, domains: &HashMap<Uuid, String>) -> Entry {
    let link = match news.review {
        Some(review) => format!("{registry}/reviews/{review}"),
        None => format!("{registry}/agents/{}/", news.agent),
    };
    let what = match news.kind.as_str() {
        "approved" => "Approved",
        "rejected" => "Rejected",
        _ => "Comment",
    };
    let domain = domains.get(&news.agent).map_or("", String::as_str);
    Entry {
        // Two events of one kind on one agent have different times.
        id: format!("{link}#{}-{}", news.kind, news.at.0),
        title: line(&format!("{what}: an agent of {domain}")),
        link,
        at: news.at,
        updated: news.at.to_rfc3339(),
        by: line(&news.by),
        text: valid(text::block(news.text.as_deref().unwrap_or_default(), BLOCK)),
    }
}

fn line(text: &str) -> String {
    valid(text::line(text, LINE))
}

/// A text without the two characters that XML excludes and that are not hidden ones.
fn valid(text: String) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
