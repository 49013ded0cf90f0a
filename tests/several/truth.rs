//! What was true after each commit, from the events in the database, and whether answers agree with it.
//!
//! The sequence numbers of events are in the order of commits, so a fact is a value between two of them. No clock is
//! used: a reader notes which event the process had applied before it asked, and the last event of the database after
//! the answer. Between these two, and not before what the same reader has seen from the same process, the answer must
//! have been true.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_domain::event::EventKind;
use a2a_registry_store::Store;
use a2a_registry_store::entity::event;
use a2a_registry_store::events::events_after;
use serde_json::Value;
use uuid::Uuid;

/// Events that are read at once.
const BATCH: u64 = 1_000;

/// A property of an agent. They are judged one by one, since what searches show of an agent is put together from
/// several reads of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// 1 while anyone finds it, else 0.
    Shown,
    /// The number in its label `round`; 0 without one.
    Round,
}

/// Readers whose answers follow one another, by replica and by what they read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    /// The number of the replica.
    pub replica: usize,
    /// What is read: searches, agents or cards.
    pub view: &'static str,
}

/// A statement about an agent: the property had this value after some commit from `low` to `high`.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The agent.
    pub agent: Uuid,
    /// What is said about it.
    pub property: Property,
    /// The value.
    pub value: u64,
    /// The first event after which it may have been true.
    pub low: i64,
    /// The last one.
    pub high: i64,
    /// Set if later claims of the same reader must not be older.
    pub reader: Option<Reader>,
    /// What was asked, for the message.
    pub source: &'static str,
}

/// A value from an event on.
#[derive(Debug, Clone, Copy)]
struct Change {
    seq: i64,
    value: u64,
}

/// The history of the registry as far as its events were read.
#[derive(Debug, Default)]
pub struct Truth {
    /// The sequence numbers of all events.
    pub events: Vec<i64>,
    histories: BTreeMap<(Uuid, Property), Vec<Change>>,
    approved: BTreeSet<Uuid>,
    holds: BTreeMap<Uuid, BTreeSet<String>>,
    positions: BTreeMap<(Reader, Uuid, Property), i64>,
}

impl Truth {
    /// Reads the events since the last call.
    pub async fn read_events(&mut self, store: &Store) {
        loop {
            let after = self.events.last().copied().unwrap_or_default();
            let rows = events_after(store, after, BATCH).await.unwrap();
            if rows.is_empty() {
                return;
            }
            for row in &rows {
                self.events.push(row.seq);
                self.apply(row);
            }
        }
    }

    fn apply(&mut self, row: &event::Model) {
        let Some(agent) = row.agent_id else {
            return;
        };
        let data: Value = serde_json::from_str(&row.data).unwrap();
        let hold = || data["hold"].as_str().unwrap_or_default().to_owned();
        if row.kind == EventKind::AgentApproved {
            self.approved.insert(agent);
        } else if row.kind == EventKind::AgentHeld {
            self.holds.entry(agent).or_default().insert(hold());
        } else if row.kind == EventKind::AgentReleased {
            self.holds.entry(agent).or_default().remove(&hold());
        } else if row.kind == EventKind::AgentUpdated
            && let Some(round) = data["labels"]["round"].as_str()
        {
            self.record(agent, Property::Round, row.seq, round.parse().unwrap());
        }
        let is_held = self
            .holds
            .get(&agent)
            .is_some_and(|holds| !holds.is_empty());
        let is_shown = self.approved.contains(&agent) && !is_held;
        self.record(agent, Property::Shown, row.seq, u64::from(is_shown));
    }

    fn record(&mut self, agent: Uuid, property: Property, seq: i64, value: u64) {
        let initial = Change {
            seq: i64::MIN,
            value: 0,
        };
        let history = self.histories.entry((agent, property));
        let history = history.or_insert_with(|| vec![initial]);
        if history.last().is_some_and(|last| last.value != value) {
            history.push(Change { seq, value });
        }
    }

    /// The agents that were ever approved, in the order of their ids.
    pub fn approved_agents(&self) -> Vec<Uuid> {
        self.approved.iter().copied().collect()
    }

    /// The value of a property after the last event.
    pub fn current(&self, agent: Uuid, property: Property) -> u64 {
        let history = self.histories.get(&(agent, property));
        let last = history.and_then(|history| history.last());
        last.map_or(0, |last| last.value)
    }

    /// Judges a claim, of which every event up to `high` must have been read.
    ///
    /// # Errors
    ///
    /// What is wrong, if it was never true in that time.
    pub fn judge(&mut self, claim: &Claim) -> Result<(), String> {
        let reader = claim.reader;
        let key = reader.map(|reader| (reader, claim.agent, claim.property));
        let position = key.and_then(|key| self.positions.get(&key).copied());
        let low = position.unwrap_or(i64::MIN).max(claim.low);
        let unchanged = [Change {
            seq: i64::MIN,
            value: 0,
        }];
        let history = self.histories.get(&(claim.agent, claim.property));
        let history = history.map_or(unchanged.as_slice(), Vec::as_slice);
        let ends = history.iter().skip(1).map(|next| next.seq - 1);
        let ends = ends.chain([i64::MAX]);
        // The earliest time at which it was true, so that the reader's next claim is judged as mildly as possible.
        let true_at = history.iter().zip(ends).find_map(|(change, end)| {
            let first = change.seq.max(low);
            (change.value == claim.value && first <= end.min(claim.high)).then_some(first)
        });
        let Some(true_at) = true_at else {
            let near = history.iter().rev().take(12).rev();
            let near: Vec<_> = near.map(|change| (change.seq, change.value)).collect();
            return Err(format!(
                "{}: never true: {claim:?}, after {position:?}; the last changes: {near:?}",
                claim.source
            ));
        };
        if let Some(key) = key {
            self.positions.insert(key, true_at);
        }
        Ok(())
    }
}

#[test]
fn a_claim_is_judged_by_the_order_of_commits() {
    let agent = Uuid::from_u128(1);
    let reader = Reader {
        replica: 0,
        view: "search",
    };
    let claim = |value, low, high, reader| Claim {
        agent,
        property: Property::Shown,
        value,
        low,
        high,
        reader,
        source: "a test",
    };
    let mut truth = Truth::default();
    for (seq, value) in [(5, 1), (9, 0), (12, 1)] {
        truth.record(agent, Property::Shown, seq, value);
    }
    truth.judge(&claim(0, 0, 4, None)).unwrap();
    truth.judge(&claim(1, 0, 5, None)).unwrap();
    truth.judge(&claim(1, 0, 4, None)).unwrap_err();
    truth.judge(&claim(0, 5, 8, None)).unwrap_err();
    truth.judge(&claim(0, 5, 9, None)).unwrap();
    // What a reader has seen is not taken back, though others may still see it.
    truth.judge(&claim(0, 5, 20, Some(reader))).unwrap();
    truth.judge(&claim(1, 5, 11, Some(reader))).unwrap_err();
    truth.judge(&claim(1, 5, 11, None)).unwrap();
    truth.judge(&claim(1, 5, 20, Some(reader))).unwrap();
    truth.judge(&claim(0, 5, 20, Some(reader))).unwrap_err();
    assert_eq!(truth.current(agent, Property::Shown), 1);
}
