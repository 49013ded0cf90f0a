//! Events that an auditor asks for: by kind, agent, domain, account and time, from either end of the log.

use a2a_registry_api::EventList;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::event_filters::{
    AccountSubjects, AgentSubjects, EventFilter, EventRange, matching_events,
};
use a2a_registry_store::reviews::{ReviewFilter, review_page};
use a2a_registry_store::{accounts, events};
use uuid::Uuid;

use crate::agents::views::require_visible_agent;
use crate::context::AppContext;
use crate::error::{ErrorKind, Result};
use crate::events::list::event_view;
use crate::paging::{ListPage, PageRequest, resolve_page_size};
use crate::visibility::caller::Caller;

/// Number of events of the log that one request looks through; its list goes on with the next page.
const EVENTS_PER_REQUEST: i64 = 50_000;
/// Maximum number of reviews of an agent whose events are found.
const MAX_REVIEWS: u64 = 1_000;

/// The events to find. What is absent restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    pub after: Option<i64>,
    pub kinds: Vec<EventKind>,
    /// Id or URN of an agent that the event, or a review in it, is about.
    pub agent: Option<String>,
    /// Domain that the event, or an agent in it, is about.
    pub domain: Option<String>,
    /// Name of an account that caused the event, or that it is about.
    pub account: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub newest_first: bool,
}

impl EventQuery {
    /// Whether it asks for every event after a position, as followers of the log do.
    pub fn is_whole_log(&self) -> bool {
        let follower = Self {
            after: self.after,
            ..Self::default()
        };
        *self == follower
    }
}

/// Finds events. A page may have fewer entries than asked for, even none, while there is a token for the next one.
pub async fn find_events(
    context: &AppContext,
    caller: &Caller,
    wanted: &EventQuery,
    page: &PageRequest,
) -> Result<EventList> {
    caller.require_permission(Permission::ReadEvents)?;
    let query = format!("events {wanted:?}");
    let list = ListPage::new(&context.page_token_signer, caller, &query, page)?;
    let position: Option<i64> = list.start_position()?;
    let Some(filter) = build_event_filter(context, caller, wanted).await? else {
        return Ok(EventList {
            events: Vec::new(),
            next_page_token: None,
        });
    };
    let highest = events::highest_event_seq(&context.store).await?;
    let range = range_to_read(wanted, position, highest);
    let limit = list.row_limit();
    let mut rows = matching_events(&context.store, &filter, range, limit).await?;
    let size = resolve_page_size(page.page_size)?;
    let has_more = rows.len() > size;
    rows.truncate(size);
    let resume = match (has_more, wanted.newest_first) {
        (true, _) => rows.last().map(|last| last.seq),
        (false, false) => range
            .before
            .filter(|before| *before <= highest)
            .map(|before| before - 1),
        (false, true) => (range.after > wanted.after.unwrap_or(0)).then_some(range.after + 1),
    };
    let signer = &context.page_token_signer;
    Ok(EventList {
        events: rows
            .into_iter()
            .filter_map(|row| event_view(caller, row))
            .collect(),
        next_page_token: resume.and_then(|seq| signer.sign_position(&query, caller, &seq)),
    })
}

/// The part of the log to look through: from the position of the last page on, in the wanted direction.
fn range_to_read(wanted: &EventQuery, position: Option<i64>, highest: i64) -> EventRange {
    let lowest = wanted.after.unwrap_or(0);
    match wanted.newest_first {
        false => {
            let after = position.unwrap_or(lowest);
            EventRange {
                after,
                before: Some(after.saturating_add(EVENTS_PER_REQUEST + 1)),
                newest_first: false,
            }
        }
        true => {
            let before = position.unwrap_or(highest.saturating_add(1));
            EventRange {
                after: lowest.max(before.saturating_sub(EVENTS_PER_REQUEST + 1)),
                before: Some(before),
                newest_first: true,
            }
        }
    }
}

/// Builds the row filter; `None` if no event can match.
async fn build_event_filter(
    context: &AppContext,
    caller: &Caller,
    wanted: &EventQuery,
) -> Result<Option<EventFilter>> {
    let agent = match &wanted.agent {
        None => None,
        Some(agent) => match find_agent_subjects(context, caller, agent).await? {
            Some(agent) => Some(agent),
            None => return Ok(None),
        },
    };
    let account = match &wanted.account {
        None => None,
        Some(name) => {
            let account = accounts::account_by_name(&context.store, name).await?;
            Some(AccountSubjects {
                name: name.clone(),
                id: account.map(|account| account.id),
            })
        }
    };
    Ok(Some(EventFilter {
        kinds: wanted.kinds.clone(),
        agent,
        domain: wanted.domain.as_deref().map(str::to_lowercase),
        account,
        since: wanted.since.map(|time| time.0),
        until: wanted.until.map(|time| time.0),
    }))
}

/// Finds an agent and its reviews. An id is taken as it is, since events of an agent outlive it.
async fn find_agent_subjects(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<Option<AgentSubjects>> {
    let id = match Uuid::try_parse(agent) {
        Ok(id) => id,
        Err(_) => match require_visible_agent(context, caller, agent).await {
            Ok(row) => row.id,
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        },
    };
    let filter = ReviewFilter {
        agents: Some(vec![id]),
        ..ReviewFilter::default()
    };
    let reviews = review_page(&context.store, &filter, None, MAX_REVIEWS).await?;
    Ok(Some(AgentSubjects {
        agent: id,
        reviews: reviews.iter().map(|review| review.id).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_in_parts_without_a_gap() {
        let part = EVENTS_PER_REQUEST;
        let mut wanted = EventQuery::default();
        let first = range_to_read(&wanted, None, 3 * part);
        assert_eq!((first.after, first.before), (0, Some(part + 1)));
        let second = range_to_read(&wanted, first.before.map(|before| before - 1), 3 * part);
        assert_eq!((second.after, second.before), (part, Some(2 * part + 1)));
        wanted.newest_first = true;
        let first = range_to_read(&wanted, None, 3 * part);
        assert_eq!((first.after, first.before), (2 * part, Some(3 * part + 1)));
        let second = range_to_read(&wanted, Some(first.after + 1), 3 * part);
        assert_eq!((second.after, second.before), (part, Some(2 * part + 1)));
        wanted.after = Some(7);
        assert_eq!(range_to_read(&wanted, Some(9), 3 * part).after, 7);
        assert!(!wanted.is_whole_log());
    }
}
