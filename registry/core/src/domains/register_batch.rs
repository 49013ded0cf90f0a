//! Writes registrations in one transaction: a single one, or a part of a bulk.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::visit_queue::VisitRequest;
use a2a_registry_store::{WriteTransaction, domains, registrants};
use serde_json::json;

use crate::admission::coverage_updates::update_domain_coverage;
use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::commit::publish::commit_and_publish;
use crate::context::AppContext;
use crate::domains::actions::reject_opted_out;
use crate::domains::register_approval::approve_pending_card;
use crate::domains::registration_limits::RegistrationCounts;
use crate::domains::registration_target::RegistrationTarget;
use crate::domains::source_registration::{AddedSources, SourceAdder};
use crate::error::{AppError, Result};
use crate::ownership::challenges::ensure_challenges;
use crate::ownership::{dispute_error, is_disputed_domain};
use crate::sources::new_domain_row;
use crate::visibility::caller::Caller;
use crate::visits::visit_request;

/// A registration that has passed all checks except those under database locks.
pub struct CheckedRegistration {
    pub target: RegistrationTarget,
    /// Whether the pending card is approved with it; the caller's right to do so was checked.
    pub approve: bool,
}

pub struct WrittenRegistrations {
    /// In the order of the registrations.
    pub results: RegistrationResults,
    pub visible_changes: Vec<CommittedChanges>,
}

/// The results of a batch: for each registration the key of its domain, or why it was refused.
type RegistrationResults = Vec<Result<i64>>;

struct BatchDomain {
    row: domain::Model,
    /// Whether this batch has inserted the domain.
    is_new: bool,
    /// Whether at least one registration of the domain was accepted.
    is_registered: bool,
    has_new_source: bool,
    sees_all: bool,
    /// The sources of other registrants that the caller has now registered too.
    joined_sources: Vec<source::Model>,
}

/// Writes registrations in order and in one transaction, each as if the previous ones were already written. A refused
/// one writes nothing and does not stop the others.
pub async fn write_registrations(
    context: &AppContext,
    caller: &Caller,
    registrations: &[CheckedRegistration],
    in_bulk: bool,
) -> Result<WrittenRegistrations> {
    let write = context.store.begin_write().await?;
    let batch = RegistrationBatch {
        context,
        write: &write,
        caller,
        request: visit_request(caller, in_bulk),
        now: context.now(),
    };
    let mut change_set = ChangeSet::new(batch.now, context.entropy.as_ref());
    let (results, mut domains) = batch
        .add_registrations(registrations, &mut change_set)
        .await?;
    if results.iter().all(Result::is_err) {
        return Ok(WrittenRegistrations {
            results,
            visible_changes: Vec::new(),
        });
    }
    batch.finish_domains(&mut domains).await?;
    // Written first, because updating the agents reads these rows from the database.
    let mut visible_changes = Vec::new();
    let mut agent_updates = Vec::new();
    for domain in domains.values() {
        let committed = batch.update_affected_agents(domain).await?;
        if domain.sees_all {
            visible_changes.push(committed.clone());
        }
        agent_updates.push(committed);
    }
    let approving = accepted_registrations(registrations, &results);
    let approving = approving.filter(|(one, _)| one.approve);
    let approving: Vec<&RegistrationTarget> = approving.map(|(one, _)| &one.target).collect();
    batch
        .approve_pending_cards(&approving, &domains, &mut change_set)
        .await?;
    batch.ensure_challenges(&domains).await?;
    let committed = change_set.write(&write).await?;
    let all = agent_updates.iter().chain([&committed]);
    commit_and_publish(context, write, all).await?;
    context.signals.visits.notify_one();
    context.signals.checks.notify_one();
    visible_changes.push(committed);
    Ok(WrittenRegistrations {
        results,
        visible_changes,
    })
}

/// Returns the accepted registrations, with the keys of their domains.
pub fn accepted_registrations<'a>(
    registrations: &'a [CheckedRegistration],
    results: &'a [Result<i64>],
) -> impl Iterator<Item = (&'a CheckedRegistration, i64)> {
    let all = registrations.iter().zip(results);
    all.filter_map(|(one, result)| Some((one, *result.as_ref().ok()?)))
}

struct RegistrationBatch<'a> {
    context: &'a AppContext,
    write: &'a WriteTransaction,
    caller: &'a Caller,
    request: VisitRequest,
    now: Timestamp,
}

impl RegistrationBatch<'_> {
    /// Adds the sources of each registration. A rejected one yields its error; a database failure ends the batch.
    async fn add_registrations(
        &self,
        registrations: &[CheckedRegistration],
        change_set: &mut ChangeSet<'_>,
    ) -> Result<(RegistrationResults, BTreeMap<String, BatchDomain>)> {
        if let Some(account) = &self.caller.account {
            self.write.lock_account(account.id).await?;
        }
        let mut counts = RegistrationCounts::default();
        let mut domains = self.lock_domains(registrations, &mut counts).await?;
        let rows: Vec<domain::Model> = domains.values().map(|one| one.row.clone()).collect();
        let mut adder = SourceAdder::load(
            self.context,
            self.write,
            self.caller,
            &rows,
            counts,
            self.now,
        )
        .await?;
        let mut results = Vec::with_capacity(registrations.len());
        for registration in registrations {
            let name = &registration.target.domain.name;
            let Some(domain) = domains.get_mut(name) else {
                let why = format!("{name} was deleted during the registration. Register it again.");
                results.push(Err(AppError::conflict(why)));
                continue;
            };
            let result = match self
                .add_registration(&mut adder, domain, registration)
                .await
            {
                Ok(added) => {
                    self.record_added_sources(change_set, domain, added);
                    Ok(domain.row.id)
                }
                // Not a refusal: the database failed, and perhaps the transaction with it.
                Err(error) if error.internal.is_some() => return Err(error),
                Err(error) => Err(error),
            };
            results.push(result);
        }
        Ok((results, domains))
    }

    /// Locks the domains of a batch by name, creating missing ones. Inserts follow the order of names and locks the
    /// order of keys, as everywhere, so that two batches cannot deadlock.
    async fn lock_domains(
        &self,
        registrations: &[CheckedRegistration],
        counts: &mut RegistrationCounts,
    ) -> Result<BTreeMap<String, BatchDomain>> {
        let target_by_name: BTreeMap<&str, &RegistrationTarget> = registrations
            .iter()
            .rev()
            .map(|one| (one.target.domain.name.as_str(), &one.target))
            .collect();
        let names: Vec<&str> = target_by_name.keys().copied().collect();
        let existing_ids = registrants::domain_ids_by_name(self.write, &names).await?;
        let mut ids = existing_ids.clone();
        if existing_ids.len() < names.len() {
            counts.count_domains(self.write, self.caller).await?;
            let there = domains::domains_by_ids(self.write, &existing_ids).await?;
            let missing = |name: &&str| there.iter().all(|row| row.name != **name);
            let missing: Vec<&str> = names.iter().copied().filter(missing).collect();
            self.insert_domains(&missing, &target_by_name).await?;
            ids = registrants::domain_ids_by_name(self.write, &names).await?;
        }
        let rows = registrants::lock_domains(self.write, &ids).await?;
        let domains = rows.into_iter().map(|row| {
            let domain = BatchDomain {
                is_new: !existing_ids.contains(&row.id) && self.is_own_insert(&row),
                is_registered: false,
                has_new_source: false,
                sees_all: false,
                joined_sources: Vec::new(),
                row,
            };
            (domain.row.name.clone(), domain)
        });
        Ok(domains.collect())
    }

    /// Whether this batch inserted a row that did not exist before, and not a concurrent caller.
    fn is_own_insert(&self, row: &domain::Model) -> bool {
        let account = self.caller.account.as_ref().map(|account| account.id);
        row.account_id == account && row.created_at == self.now.0
    }

    async fn insert_domains(
        &self,
        names: &[&str],
        target_by_name: &BTreeMap<&str, &RegistrationTarget>,
    ) -> Result<()> {
        // A deleted domain that is registered again keeps the spacing of its last visit.
        let earliest_visits = domains::earliest_visits_after_deletion(self.write, names).await?;
        let turns = self
            .write
            .next_visit_turns(&self.request, names.len())
            .await?;
        let mut rows = Vec::with_capacity(names.len());
        for (name, turn) in names.iter().zip(turns) {
            let Some(target) = target_by_name.get(name) else {
                continue;
            };
            let rest = earliest_visits.get(*name).copied().unwrap_or(self.now.0);
            let first_visit_at = rest.max(self.now.0);
            rows.push(domain::Model {
                account_id: self.caller.account.as_ref().map(|account| account.id),
                nominated_from: self.caller.network.map(|network| network.to_string()),
                not_before: first_visit_at,
                visit_due_at: Some(first_visit_at),
                visit_turn: turn,
                visit_requester: Some(self.request.requester.clone()),
                ..new_domain_row(name, target.domain.origin.scheme(), self.now)
            });
        }
        Ok(self.write.insert_domains(rows).await?)
    }

    async fn add_registration(
        &self,
        adder: &mut SourceAdder<'_>,
        domain: &BatchDomain,
        registration: &CheckedRegistration,
    ) -> Result<AddedSources> {
        let row = &domain.row;
        reject_opted_out(row)?;
        if is_disputed_domain(row)? && !self.caller.has_permission(Permission::Curate) {
            return Err(dispute_error(row));
        }
        let is_first = domain.is_new && !domain.is_registered;
        if is_first {
            adder.counts.check_domain_limit(self.context)?;
        }
        let added = adder
            .add_registration(row, &registration.target, registration.approve)
            .await?;
        if is_first {
            adder.counts.count_added_domain();
        }
        Ok(added)
    }

    /// Records what a registration has added to a domain.
    fn record_added_sources(
        &self,
        change_set: &mut ChangeSet<'_>,
        domain: &mut BatchDomain,
        added: AddedSources,
    ) {
        if let Some((kind, url)) = &added.first_new {
            let account = self.caller.account.as_ref();
            let actor = account.map_or("anyone", |account| account.name.as_str());
            let data = json!({"kind": kind, "url": url});
            change_set.add_event(EventKind::DomainRegistered, &domain.row.name, actor, data);
        }
        domain.is_registered = true;
        domain.has_new_source |= added.has_new_source;
        domain.sees_all = added.sees_all;
        domain.joined_sources.extend(added.joined_sources);
    }

    /// Whether the domain's visit is queued with a bulk registration, so that the caller's turn may be earlier.
    fn can_advance_visit(&self, row: &domain::Model) -> bool {
        let waits = row.visit_due_at.is_some() && row.visit_interval_us.is_none();
        let is_own = row.visit_requester.as_ref() == Some(&self.request.requester);
        waits && row.lease.is_none() && row.visit_turn >= 0 && !(is_own && self.request.in_bulk)
    }

    /// Makes the visits of domains with new sources due, moves visits queued with a bulk to the caller's turn if that
    /// is earlier, and removes the new domains whose registrations were all refused. Existing domains of refused
    /// registrations do not change: not even a challenge may reveal to the caller that they exist.
    async fn finish_domains(&self, domains: &mut BTreeMap<String, BatchDomain>) -> Result<()> {
        for domain in domains.values().filter(|one| !one.is_new) {
            let id = domain.row.id;
            if domain.has_new_source
                || (domain.is_registered && self.can_advance_visit(&domain.row))
            {
                self.write.assign_visit_turn(id, &self.request).await?;
            }
            if domain.has_new_source {
                self.write
                    .bring_visit_forward(id, self.now.0.max(domain.row.not_before))
                    .await?;
            }
        }
        let unused = domains.values();
        let unused = unused.filter(|one| one.is_new && !one.is_registered);
        let unused: Vec<i64> = unused.map(|one| one.row.id).collect();
        self.write.undo_domain_inserts(&unused).await?;
        domains.retain(|_, one| one.is_registered);
        Ok(())
    }

    /// Updates the agents of a domain after another caller has registered some of its sources too: their coverage, and
    /// who may see them. A new source needs no update, but for a caller that is not the owner the same work is done,
    /// so that the response time does not reveal which URLs others have registered.
    async fn update_affected_agents(&self, domain: &BatchDomain) -> Result<CommittedChanges> {
        let sources = &domain.joined_sources;
        let is_new_to_stranger = domain.has_new_source && !domain.sees_all;
        if sources.is_empty() && !is_new_to_stranger {
            return Ok(CommittedChanges::default());
        }
        let mut change_set = ChangeSet::new(self.now, self.context.entropy.as_ref());
        update_domain_coverage(self.context, self.write, &mut change_set, &domain.row).await?;
        for source in sources {
            if let Some(agent) = source.agent_id {
                let data = json!({"source": source.url, "registered": true});
                change_set.add_agent_event(EventKind::AgentUpdated, agent, SYSTEM_ACTOR, data);
            }
        }
        change_set.write(self.write).await
    }

    /// Approves the pending cards at these targets.
    async fn approve_pending_cards(
        &self,
        targets: &[&RegistrationTarget],
        domains: &BTreeMap<String, BatchDomain>,
        change_set: &mut ChangeSet<'_>,
    ) -> Result<()> {
        let governance = &self.context.config().governance;
        let mut approved_agents = BTreeSet::new();
        for target in targets {
            let Some(BatchDomain { row, .. }) = domains.get(&target.domain.name) else {
                continue;
            };
            let approved_agents = &mut approved_agents;
            approve_pending_card(
                governance,
                self.write,
                change_set,
                self.caller,
                row,
                target,
                approved_agents,
            )
            .await?;
        }
        Ok(())
    }

    async fn ensure_challenges(&self, domains: &BTreeMap<String, BatchDomain>) -> Result<()> {
        let Some(account) = &self.caller.account else {
            return Ok(());
        };
        let provable = domains.values().map(|one| &one.row);
        let provable = provable.filter(|row| row.can_be_proved());
        let provable: Vec<i64> = provable.map(|row| row.id).collect();
        ensure_challenges(self.context, self.write, &provable, account.id).await
    }
}
