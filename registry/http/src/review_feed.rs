//! Atom feed of an account (RFC 4287): its reviews to decide, and decisions and comments on its agents.
//!
//! Feed readers send no token, so the feed URL contains a secret. The secret gives access only to the feed, and
//! becomes invalid with the account.

use std::collections::HashMap;

use a2a_registry_api::{CreatedFeed, News, Review};
use a2a_registry_core::accounts::authentication::{
    authenticate_feed_reader, random_secret, sha256_hex,
};
use a2a_registry_core::commit::change_set::ChangeSet;
use a2a_registry_core::commit::publish::commit_changes;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::reviews::inbox::feed_items;
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
pub(crate) struct AtomFeed {
    id: Uuid,
    account: String,
    registry: String,
    updated: String,
    entries: Vec<AtomEntry>,
}

struct AtomEntry {
    id: String,
    title: String,
    link: String,
    at: Timestamp,
    updated: String,
    by: String,
    text: String,
}

/// Creates a feed for the caller, or a new URL for the existing feed, which invalidates the old URL. The feed never
/// shows more than the caller may see at the time.
pub async fn review_feed_renew(context: &AppContext, caller: &Caller) -> Result<CreatedFeed> {
    let account = caller.require_permission(Permission::Read)?;
    let secret = random_secret(context);
    let write = context.store.begin_write().await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let now = change_set.now();
    let row = feed::Model {
        account_id: account.id,
        hash: sha256_hex(&secret),
        created_at: now.0,
        scopes: Some(account.scopes.to_string()),
    };
    write.upsert_feed(row).await?;
    let data = json!({"account": account.name});
    change_set.add_event(EventKind::FeedCreated, account.id, &account.name, data);
    commit_changes(context, write, change_set).await?;
    Ok(CreatedFeed {
        url: format!("{}/feeds/{secret}", context.config().public_url()),
        created_at: now,
    })
}

pub async fn review_feed_revoke(context: &AppContext, caller: &Caller) -> Result<()> {
    let account = caller.require_permission(Permission::Read)?;
    let write = context.store.begin_write().await?;
    if !write.delete_feed(account.id).await? {
        return Err(AppError::not_found("You do not have a feed."));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"account": account.name});
    change_set.add_event(EventKind::FeedRevoked, account.id, &account.name, data);
    commit_changes(context, write, change_set).await
}

/// Creation time of the caller's feed URL; `None` without a feed.
pub(crate) async fn review_feed_created_at(
    context: &AppContext,
    caller: &Caller,
) -> Result<Option<Timestamp>> {
    let account = caller.require_permission(Permission::Read)?;
    let row = feeds::feed_by_account(&context.store, account.id).await?;
    Ok(row.map(|row| Timestamp(row.created_at)))
}

pub(crate) async fn load_review_feed(context: &AppContext, secret: &str) -> Result<AtomFeed> {
    let caller = authenticate_feed_reader(context, secret).await?;
    let caller = caller.ok_or_else(AppError::no_resource)?;
    let account = caller.require_permission(Permission::Read)?;
    let (reviews, news) = feed_items(context, account).await?;
    let ids: Vec<Uuid> = news.iter().map(|one| one.agent).collect();
    let domains: HashMap<Uuid, String> = agents_by_ids(&context.store, &ids)
        .await?
        .into_iter()
        .map(|agent| (agent.id, agent.domain))
        .collect();
    let registry = context.config().public_url();
    let reviews = reviews
        .iter()
        .map(|review| review_atom_entry(&registry, review));
    let news = news
        .iter()
        .map(|news| news_atom_entry(&registry, news, &domains));
    let mut entries: Vec<AtomEntry> = reviews.chain(news).collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    let updated = entries.first().map_or(Timestamp(0), |entry| entry.at);
    Ok(AtomFeed {
        id: account.id,
        account: xml_safe_line(&account.name),
        registry,
        updated: updated.to_rfc3339(),
        entries,
    })
}

fn review_atom_entry(registry: &str, review: &Review) -> AtomEntry {
    let link = format!("{registry}/reviews/{}", review.id);
    let named = format!("{} at {}", review.name, review.domain);
    AtomEntry {
        id: link.clone(),
        title: xml_safe_line(&format!("Review to decide: {named}")),
        link,
        at: review.created_at,
        updated: review.created_at.to_rfc3339(),
        by: review
            .submitter
            .as_deref()
            .map_or_else(String::new, xml_safe_line),
        text: match review.due {
            Some(due) => format!("Due {}", due.to_rfc3339()),
            None => String::new(),
        },
    }
}

fn news_atom_entry(registry: &str, news: &News, domains: &HashMap<Uuid, String>) -> AtomEntry {
    let link = match news.review {
        Some(review) => format!("{registry}/reviews/{review}"),
        None => format!("{registry}/agents/{}/", news.agent),
    };
    let what = match news.kind.as_str() {
        "approved" => "Approved",
        "rejected" => "Rejected",
        "hidden" => "Hidden from some callers",
        _ => "Comment",
    };
    let domain = domains.get(&news.agent).map_or("", String::as_str);
    AtomEntry {
        // Two events of the same kind on the same agent have different times.
        id: format!("{link}#{}-{}", news.kind, news.at.0),
        title: xml_safe_line(&format!("{what}: an agent of {domain}")),
        link,
        at: news.at,
        updated: news.at.to_rfc3339(),
        by: xml_safe_line(&news.by),
        text: replace_invalid_xml(text::multiline_text(
            news.text.as_deref().unwrap_or_default(),
            BLOCK,
        )),
    }
}

fn xml_safe_line(text: &str) -> String {
    replace_invalid_xml(text::single_line(text, LINE))
}

/// Replaces the two characters that XML excludes and that are not hidden characters.
fn replace_invalid_xml(text: String) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
