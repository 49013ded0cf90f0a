//! Filters of events: by kind, agent, domain, account and time, and by what the caller finds. Lists, streams and files
//! of events share them.

use std::collections::{HashMap, HashSet};

use a2a_registry_api::HookFilter;
use a2a_registry_api::limits::MAX_CONDITION_VALUES;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::accounts;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::entity::event;
use a2a_registry_store::event_conditions::{
    AccountSubjects, EventConditions, EventRange, matching_events,
};
use a2a_registry_store::events::event_agent;
use serde_json::Value;
use uuid::Uuid;

use crate::agents::views::require_visible_agent;
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::hooks::sight::select_agents;
use crate::visibility::caller::Caller;

/// Events of the log that one call looks through, if it has a filter.
const EVENTS_PER_CALL: i64 = 50_000;
/// Events whose agents are tested at once.
const TESTED_EVENTS: usize = 200;
/// How often one call tests so many events.
const TESTS_PER_CALL: usize = 10;

/// Which events are shown: those that meet every condition. One without values restricts nothing, and several values
/// are alternatives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub kinds: Vec<EventKind>,
    /// Ids or URNs of agents that events are about, by themselves or through a review.
    pub agents: Vec<String>,
    /// Domains that events, or the agents in them, are about.
    pub domains: Vec<String>,
    /// Names of collections that hold the agents, as far as the caller finds these now.
    pub collections: Vec<String>,
    /// A saved search of the caller that finds the agents now.
    pub search: Option<Uuid>,
    /// Name of an account that caused the events, or that they are about.
    pub account: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// Events that a filter has found in a range of the log.
#[derive(Debug)]
pub struct FoundEvents {
    pub rows: Vec<event::Model>,
    /// The last number that was looked at. The range goes on from there unless it [ends](range_end) there.
    pub end: i64,
}

/// The last number of a range in its direction.
pub fn range_end(range: EventRange) -> i64 {
    match range.newest_first {
        false => range.before.saturating_sub(1),
        true => range.after.saturating_add(1),
    }
}

/// The part of a range after a number in its direction.
fn range_after(range: EventRange, seq: i64) -> EventRange {
    match range.newest_first {
        false => EventRange {
            after: seq,
            ..range
        },
        true => EventRange {
            before: seq,
            ..range
        },
    }
}

/// The part of a range that one call looks through.
fn first_part(range: EventRange) -> EventRange {
    let count = EVENTS_PER_CALL + 1;
    match range.newest_first {
        false => EventRange {
            before: range.before.min(range.after.saturating_add(count)),
            ..range
        },
        true => EventRange {
            after: range.after.max(range.before.saturating_sub(count)),
            ..range
        },
    }
}

impl EventFilter {
    /// # Errors
    /// `Invalid` for a condition with more values than a request may give.
    pub fn check_value_counts(&self) -> Result<()> {
        let counts = [
            ("/agent", self.agents.len()),
            ("/domain", self.domains.len()),
            ("/collection", self.collections.len()),
        ];
        match counts
            .iter()
            .find(|(_, count)| *count > MAX_CONDITION_VALUES)
        {
            None => Ok(()),
            Some((pointer, _)) => Err(AppError::invalid(
                pointer,
                format!("at most {MAX_CONDITION_VALUES} values"),
            )),
        }
    }

    /// Finds at most `limit` events of a range. It may find fewer, even none, before the range ends.
    pub async fn find_events(
        &self,
        context: &AppContext,
        caller: &Caller,
        range: EventRange,
        limit: usize,
    ) -> Result<FoundEvents> {
        let Some(conditions) = self.resolve_conditions(context, caller).await? else {
            return Ok(FoundEvents {
                rows: Vec::new(),
                end: range_end(range),
            });
        };
        let range = match *self == Self::default() {
            true => range,
            false => first_part(range),
        };
        let read_limit = match self.tests_agents() {
            true => TESTED_EVENTS,
            // One more, to know whether others follow.
            false => limit.saturating_add(1),
        };
        let (mut rows, mut rest) = (Vec::new(), range);
        for _ in 0..TESTS_PER_CALL {
            let read = matching_events(&context.store, &conditions, rest, read_limit as u64);
            let mut read = read.await?;
            let last = read.last().map(|last| last.seq);
            let last = last.filter(|_| read.len() == read_limit);
            self.retain_of_agents(context, caller, &conditions.domains, &mut read)
                .await?;
            rows.append(&mut read);
            if rows.len() > limit {
                rows.truncate(limit);
                let end = rows.last().map_or(range_end(range), |last| last.seq);
                return Ok(FoundEvents { rows, end });
            }
            let Some(last) = last else {
                let end = range_end(range);
                return Ok(FoundEvents { rows, end });
            };
            rest = range_after(rest, last);
        }
        let end = match range.newest_first {
            false => rest.after,
            true => rest.before,
        };
        Ok(FoundEvents { rows, end })
    }

    /// The conditions on rows; `None` if no event can meet them.
    async fn resolve_conditions(
        &self,
        context: &AppContext,
        caller: &Caller,
    ) -> Result<Option<EventConditions>> {
        let mut agents = Vec::with_capacity(self.agents.len());
        for agent in &self.agents {
            agents.extend(find_agent_id(context, caller, agent).await?);
        }
        if agents.is_empty() && !self.agents.is_empty() {
            return Ok(None);
        }
        let account = match &self.account {
            None => None,
            Some(name) => {
                let account = accounts::account_by_name(&context.store, name).await?;
                Some(AccountSubjects {
                    name: name.clone(),
                    id: account.map(|account| account.id),
                })
            }
        };
        Ok(Some(EventConditions {
            kinds: self.kinds.clone(),
            agents,
            domains: self
                .domains
                .iter()
                .map(|name| name.to_lowercase())
                .collect(),
            account,
            since: self.since.map(|time| time.0),
            until: self.until.map(|time| time.0),
        }))
    }

    /// Whether events are read first and their agents tested then.
    fn tests_agents(&self) -> bool {
        !self.domains.is_empty() || !self.agent_selections().is_empty()
    }

    /// What selects agents as the caller finds them: the collections, and the saved search, which has filters of its
    /// own.
    fn agent_selections(&self) -> Vec<HookFilter> {
        let by_collections = HookFilter {
            collections: self.collections.clone(),
            ..HookFilter::default()
        };
        let by_search = HookFilter {
            search: self.search,
            ..HookFilter::default()
        };
        let both = [by_collections, by_search].into_iter();
        both.filter(|one| *one != HookFilter::default()).collect()
    }

    /// Leaves the events whose agent is of these domains, and is selected.
    async fn retain_of_agents(
        &self,
        context: &AppContext,
        caller: &Caller,
        domains: &[String],
        rows: &mut Vec<event::Model>,
    ) -> Result<()> {
        if !self.tests_agents() {
            return Ok(());
        }
        let event_agents: HashMap<i64, Uuid> = rows
            .iter()
            .filter_map(|row| {
                let data: Value = serde_json::from_str(&row.data).unwrap_or_default();
                Some((row.seq, event_agent(row.agent_id, &data)?))
            })
            .collect();
        let mut selected: HashSet<Uuid> = event_agents.values().copied().collect();
        let ids: Vec<Uuid> = selected.iter().copied().collect();
        let agents = agents_by_ids(&context.store, &ids).await?;
        let agent_domains: HashMap<Uuid, String> =
            agents.into_iter().map(|row| (row.id, row.domain)).collect();
        let selections = self.agent_selections();
        for selection in &selections {
            let among: Vec<Uuid> = selected.into_iter().collect();
            let found = select_agents(context, caller, selection, Some(&among), among.len());
            selected = found.await?;
        }
        rows.retain(|row| {
            let agent = event_agents.get(&row.seq);
            let domain = agent.and_then(|agent| agent_domains.get(agent));
            let has_domain = domains.is_empty() || domains.contains(domain.unwrap_or(&row.subject));
            let is_selected = agent.is_some_and(|agent| selected.contains(agent));
            has_domain && (selections.is_empty() || is_selected)
        });
        Ok(())
    }
}

/// Finds the id of an agent. An id is taken as it is, since events of an agent outlive it.
async fn find_agent_id(context: &AppContext, caller: &Caller, agent: &str) -> Result<Option<Uuid>> {
    if let Ok(id) = Uuid::try_parse(agent) {
        return Ok(Some(id));
    }
    match require_visible_agent(context, caller, agent).await {
        Ok(row) => Ok(Some(row.id)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_in_parts_without_a_gap() {
        let part = EVENTS_PER_CALL;
        for newest_first in [false, true] {
            let whole = EventRange {
                after: 7,
                before: 3 * part,
                newest_first,
            };
            let (mut rest, mut read) = (whole, Vec::new());
            while read.len() < 10
                && read.last().map(|last| range_end(*last)) != Some(range_end(whole))
            {
                read.push(first_part(rest));
                rest = range_after(rest, range_end(first_part(rest)));
            }
            if newest_first {
                read.reverse();
            }
            assert_eq!((read[0].after, read[2].before), (7, 3 * part));
            assert_eq!(read.len(), 3);
            for (one, next) in read.iter().zip(&read[1..]) {
                assert_eq!(one.before, next.after + 1);
                assert!(one.before - one.after - 1 <= part);
            }
        }
    }

    #[test]
    fn a_condition_has_a_bounded_number_of_values() {
        let filter = |count: usize| EventFilter {
            domains: vec!["a.example".to_owned(); count],
            ..EventFilter::default()
        };
        assert!(filter(MAX_CONDITION_VALUES).check_value_counts().is_ok());
        let refused = filter(MAX_CONDITION_VALUES + 1).check_value_counts();
        assert!(refused.is_err_and(|error| error.members[0].0 == "/domain"));
    }
}
