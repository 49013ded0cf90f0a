//! Turns of requested visits: the order in which they are made, so that accounts share the crawler.
//!
//! The lowest turn comes first. Visits requested one by one have negative turns, by the number of the requester's
//! visits that already wait, so that a requester of one visit goes before a requester of many. Visits requested in
//! bulk have positive turns by self-clocked fair queueing: a requester's turns follow one another from the turn that
//! the crawler has reached, so that it makes one visit for each requester in turn, however many each has requested.
//! Turns are stored in the database alone, so they are the same for every process and after a restart.

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::Condition;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect, Select};

use super::entity::{domain, pace};
use super::visit_networks::PACE_ROW_ID;
use super::{Executor, StoreError, WriteTransaction};

/// Maximum number of waiting single visits of a requester that go before bulk visits; further ones count as bulk
/// visits. So a requester of endless single visits delays no other requester for long.
pub const MAX_SINGLE_VISITS: i64 = 64;

/// Maximum number of single visits of a requester that can hold leases reserved for single visits. Otherwise one
/// requester of slow hosts could hold all of them.
pub(super) const RESERVED_PER_REQUESTER: i64 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitRequest {
    /// The account, or the network of a caller without one; empty for the registry itself.
    pub requester: String,
    /// Whether the visits are requested in bulk rather than one by one.
    pub in_bulk: bool,
}

impl VisitRequest {
    /// A visit that the registry schedules itself. It counts as a bulk visit by the first registrant of the domain.
    pub fn by_registry(row: &domain::Model) -> Self {
        let account = row.account_id.map(|account| account.to_string());
        Self {
            requester: account
                .or_else(|| row.nominated_from.clone())
                .unwrap_or_default(),
            in_bulk: true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NextVisitTurns {
    reached: i64,
    /// The number of the requester's waiting single visits.
    singles: i64,
    /// The last turn of the requester's bulk visits; 0 if none waits.
    last_in_bulk: i64,
}

impl NextVisitTurns {
    fn take_turn(&mut self, in_bulk: bool) -> i64 {
        if !in_bulk && self.singles < MAX_SINGLE_VISITS {
            self.singles += 1;
            return self.singles - 1 - MAX_SINGLE_VISITS;
        }
        self.last_in_bulk = self.last_in_bulk.max(self.reached).saturating_add(1);
        self.last_in_bulk
    }
}

impl WriteTransaction {
    /// The turns of the next `count` visits of a request. Concurrent writes for one requester may get the same turns
    /// unless [`WriteTransaction::lock_account`] serializes them; such visits are made in the order of their due
    /// times.
    pub async fn next_visit_turns(
        &self,
        request: &VisitRequest,
        count: usize,
    ) -> Result<Vec<i64>, StoreError> {
        let mut next = self.read_next_visit_turns(request, count).await?;
        Ok((0..count)
            .map(|_| next.take_turn(request.in_bulk))
            .collect())
    }

    async fn read_next_visit_turns(
        &self,
        request: &VisitRequest,
        count: usize,
    ) -> Result<NextVisitTurns, StoreError> {
        let db = self.connection();
        let select_waiting = || select_domains_requested_by(&request.requester);
        let singles = match request.in_bulk {
            true => MAX_SINGLE_VISITS,
            false => {
                let singles = select_waiting().filter(domain::Column::VisitTurn.lt(0_i64));
                i64::try_from(singles.count(db).await?).unwrap_or(MAX_SINGLE_VISITS)
            }
        };
        let mut next = NextVisitTurns {
            reached: 0,
            singles,
            last_in_bulk: 0,
        };
        // The bulk turns are read only if a visit counts as bulk.
        if singles.saturating_add(i64::try_from(count).unwrap_or(i64::MAX)) > MAX_SINGLE_VISITS {
            next.reached = self.reached_visit_turn().await?;
            let last: Option<Option<i64>> = select_waiting()
                .select_only()
                .column_as(domain::Column::VisitTurn.max(), "last")
                .into_tuple()
                .one(db)
                .await?;
            next.last_in_bulk = last.flatten().unwrap_or(0).max(0);
        }
        Ok(next)
    }

    /// Assigns a turn to the next visit of a domain. A waiting visit keeps an earlier turn. While a visit is under
    /// way, the turn is that of the next one.
    pub async fn assign_visit_turn(
        &self,
        id: i64,
        request: &VisitRequest,
    ) -> Result<(), StoreError> {
        use domain::Column as C;
        let turn = self
            .read_next_visit_turns(request, 1)
            .await?
            .take_turn(request.in_bulk);
        let has_no_earlier_turn = Condition::any()
            .add(C::VisitIntervalUs.is_not_null())
            .add(C::VisitDueAt.is_null())
            .add(C::Lease.is_not_null())
            .add(C::VisitTurn.gt(turn));
        let which = Condition::all().add(C::Id.eq(id)).add(has_no_earlier_turn);
        self.set_visit_turn(which, request, turn).await
    }

    /// Moves visits of these domains that were released unmade, and must wait now, behind all waiting bulk visits of
    /// their requesters. With their old turns they would go before all other visits after the wait.
    pub(super) async fn requeue_visits(&self, ids: &[i64], lease: i64) -> Result<(), StoreError> {
        use domain::Column as C;
        let waiting: Vec<(i64, Option<String>)> = domain::Entity::find()
            .select_only()
            .columns([C::Id, C::VisitRequester])
            .filter(C::Lease.eq(lease))
            .filter(C::Id.is_in(ids.iter().copied()))
            .filter(C::VisitIntervalUs.is_null())
            .filter(C::VisitTurn.gte(0_i64))
            .into_tuple()
            .all(self.connection())
            .await?;
        for (id, requester) in waiting {
            let request = VisitRequest {
                requester: requester.unwrap_or_default(),
                in_bulk: true,
            };
            let turn = self
                .read_next_visit_turns(&request, 1)
                .await?
                .take_turn(true);
            let which = Condition::all().add(C::Id.eq(id));
            self.set_visit_turn(which, &request, turn).await?;
        }
        Ok(())
    }

    /// The turn that the crawler has reached: the highest that was leased.
    async fn reached_visit_turn(&self) -> Result<i64, StoreError> {
        let reached: Option<i64> = pace::Entity::find_by_id(PACE_ROW_ID)
            .select_only()
            .column(pace::Column::Turn)
            .into_tuple()
            .one(self.connection())
            .await?;
        Ok(reached.unwrap_or(0))
    }

    /// Stores the turn that the crawler reaches by leasing these domains; `stored_turn` is the stored one.
    pub(super) async fn store_reached_visit_turn(
        &self,
        stored_turn: i64,
        leased: &[domain::Model],
    ) -> Result<(), StoreError> {
        let requested = leased.iter().filter(|row| row.visit_interval_us.is_none());
        let Some(reached) = requested.map(|row| row.visit_turn).max() else {
            return Ok(());
        };
        if reached <= stored_turn {
            return Ok(());
        }
        let rows = pace::Entity::update_many()
            .set(pace::ActiveModel {
                turn: Set(reached),
                ..Default::default()
            })
            .filter(pace::Column::Id.eq(PACE_ROW_ID));
        self.update_rows(rows).await
    }

    async fn set_visit_turn(
        &self,
        condition: Condition,
        request: &VisitRequest,
        turn: i64,
    ) -> Result<(), StoreError> {
        let rows = domain::Entity::update_many()
            .set(domain::ActiveModel {
                visit_turn: Set(turn),
                visit_requester: Set(Some(request.requester.clone())),
                ..Default::default()
            })
            .filter(condition);
        self.update_rows(rows).await
    }
}

/// The domains with a requested visit by this requester, under way or not.
fn select_domains_requested_by(requester: &str) -> Select<domain::Entity> {
    domain::Entity::find()
        .filter(domain::Column::VisitRequester.eq(requester))
        .filter(domain::Column::VisitIntervalUs.is_null())
        .filter(domain::Column::VisitDueAt.is_not_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_visits_go_first_up_to_their_number_and_then_join_the_bulk() {
        let mut next = NextVisitTurns {
            reached: 500,
            singles: 0,
            last_in_bulk: 0,
        };
        let singles: Vec<i64> = (0..MAX_SINGLE_VISITS)
            .map(|_| next.take_turn(false))
            .collect();
        assert!(singles.is_sorted() && singles.iter().all(|turn| *turn < 0));
        assert_eq!(
            (singles[0], next.take_turn(false)),
            (-MAX_SINGLE_VISITS, 501)
        );
        assert_eq!(next.take_turn(true), 502);
    }

    #[test]
    fn a_bulk_follows_its_own_last_visit_or_begins_where_the_crawler_is() {
        for (reached, last_in_bulk, expected) in [(0, 0, 1), (7, 3, 8), (7, 90, 91)] {
            let mut next = NextVisitTurns {
                reached,
                singles: 0,
                last_in_bulk,
            };
            assert_eq!(next.take_turn(true), expected);
            assert_eq!(next.take_turn(true), expected + 1);
        }
        let mut last = NextVisitTurns {
            reached: i64::MAX,
            singles: 0,
            last_in_bulk: 0,
        };
        assert_eq!(last.take_turn(true), i64::MAX);
    }
}
