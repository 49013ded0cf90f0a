//! Writes registrations: one, or a part of a bulk, in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::visit_turns::VisitRequest;
use a2a_registry_store::{Write, coverage, domains};
use serde_json::json;

use crate::admission::covering::follow_coverage;
use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_written;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::domains::acts::refuse_opted_out;
use crate::domains::adding::{AddedSources, SourceAdder};
use crate::domains::register_approval::approve_pending;
use crate::domains::registration_counts::RegistrationCounts;
use crate::domains::target::Target;
use crate::error::{AppError, Result};
use crate::ownership::challenges::ensure_challenges;
use crate::ownership::{disputed, is_disputed, is_provable};
use crate::sources::new_domain;
use crate::visibility::caller::Caller;
use crate::visits::visit_request;

/// A registration that passed all checks that need no locks in the database.
pub struct AdmittedRegistration {
    pub target: Target,
    /// Whether the waiting card is approved with it, which the caller may do.
    pub approve: bool,
}

pub struct WrittenBatch {
    /// In the order of the registrations.
    pub results: Results,
    pub shown: Vec<Touched>,
}

/// For each registration of a batch the key of its domain, or why it was refused.
type Results = Vec<Result<i64>>;

struct BatchDomain {
    row: domain::Model,
    /// Whether this batch has inserted it.
    is_new: bool,
    /// Whether a registration of it was not refused.
    is_registered: bool,
    has_new_source: bool,
    sees_all: bool,
    /// The sources of other registrants that the caller has registered too.
    registrants_of: Vec<source::Model>,
}

/// Writes registrations in order, each as if the previous ones were already written, in one transaction. A refused one
/// writes nothing and does not stop the others.
pub async fn write_batch(
    context: &Context,
    caller: &Caller,
    registrations: &[AdmittedRegistration],
    in_bulk: bool,
) -> Result<WrittenBatch> {
    let write = context.store.write().await?;
    let batch = Batch {
        context,
        write: &write,
        caller,
        request: visit_request(caller, in_bulk),
        now: context.now(),
    };
    let mut ledger = Ledger::new(batch.now, context.entropy.as_ref());
    let (results, mut domains) = batch.add(registrations, &mut ledger).await?;
    if results.iter().all(Result::is_err) {
        return Ok(WrittenBatch {
            results,
            shown: Vec::new(),
        });
    }
    batch.finish_domains(&mut domains).await?;
    // Written before the agents are updated, which reads them from the database.
    let mut shown = Vec::new();
    let mut updated = Vec::new();
    for one in domains.values() {
        let touched = batch.update_agents(one).await?;
        if one.sees_all {
            shown.push(touched.clone());
        }
        updated.push(touched);
    }
    let approving = written_registrations(registrations, &results);
    let approving = approving.filter(|(one, _)| one.approve);
    let approving: Vec<&Target> = approving.map(|(one, _)| &one.target).collect();
    batch.approve(&approving, &domains, &mut ledger).await?;
    batch.ensure_challenges(&domains).await?;
    let touched = ledger.write(&write).await?;
    let all = updated.iter().chain([&touched]);
    commit_written(context, write, all).await?;
    context.wake.visits.notify_one();
    context.wake.checks.notify_one();
    shown.push(touched);
    Ok(WrittenBatch { results, shown })
}

/// The registrations that were not refused, with the keys of their domains.
pub fn written_registrations<'a>(
    registrations: &'a [AdmittedRegistration],
    results: &'a [Result<i64>],
) -> impl Iterator<Item = (&'a AdmittedRegistration, i64)> {
    let all = registrations.iter().zip(results);
    all.filter_map(|(one, result)| Some((one, *result.as_ref().ok()?)))
}

struct Batch<'a> {
    context: &'a Context,
    write: &'a Write,
    caller: &'a Caller,
    request: VisitRequest,
    now: Timestamp,
}

impl Batch<'_> {
    /// Adds the sources of each registration. A refused one yields its error; a failure of the database ends the batch.
    async fn add(
        &self,
        registrations: &[AdmittedRegistration],
        ledger: &mut Ledger<'_>,
    ) -> Result<(Results, BTreeMap<String, BatchDomain>)> {
        if let Some(account) = &self.caller.account {
            self.write.account_lock(account.id).await?;
        }
        let mut counts = RegistrationCounts::default();
        let mut domains = self.begin_domains(registrations, &mut counts).await?;
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
                let why = format!("{name} was deleted at this moment. Register it again.");
                results.push(Err(AppError::conflict(why)));
                continue;
            };
            let result = match self.add_one(&mut adder, domain, registration).await {
                Ok(added) => {
                    self.note(ledger, domain, added);
                    Ok(domain.row.id)
                }
                // Not refused: the database failed, and perhaps the transaction with it.
                Err(error) if error.internal.is_some() => return Err(error),
                Err(error) => Err(error),
            };
            results.push(result);
        }
        Ok((results, domains))
    }

    /// Locks the domains of a batch by name, creating missing ones. They are inserted in the order of names and locked
    /// in the order of keys, as everywhere, which rules out a deadlock of two batches.
    async fn begin_domains(
        &self,
        registrations: &[AdmittedRegistration],
        counts: &mut RegistrationCounts,
    ) -> Result<BTreeMap<String, BatchDomain>> {
        let wanted: BTreeMap<&str, &Target> = registrations
            .iter()
            .rev()
            .map(|one| (one.target.domain.name.as_str(), &one.target))
            .collect();
        let names: Vec<&str> = wanted.keys().copied().collect();
        let known = coverage::domains_named(self.write, &names).await?;
        let mut ids = known.clone();
        if known.len() < names.len() {
            counts.count_domains(self.write, self.caller).await?;
            let there = domains::domains_by_ids(self.write, &known).await?;
            let missing = |name: &&str| there.iter().all(|row| row.name != **name);
            let missing: Vec<&str> = names.iter().copied().filter(missing).collect();
            self.insert_domains(&missing, &wanted).await?;
            ids = coverage::domains_named(self.write, &names).await?;
        }
        let rows = coverage::domains_locked(self.write, &ids).await?;
        let domains = rows.into_iter().map(|row| {
            let domain = BatchDomain {
                is_new: !known.contains(&row.id) && self.is_inserted(&row),
                is_registered: false,
                has_new_source: false,
                sees_all: false,
                registrants_of: Vec::new(),
                row,
            };
            (domain.row.name.clone(), domain)
        });
        Ok(domains.collect())
    }

    /// Whether a row that did not exist before is this batch's own, and not one of a concurrent caller.
    fn is_inserted(&self, row: &domain::Model) -> bool {
        let account = self.caller.account.as_ref().map(|account| account.id);
        row.account_id == account && row.created_at == self.now.0
    }

    async fn insert_domains(&self, names: &[&str], wanted: &BTreeMap<&str, &Target>) -> Result<()> {
        // A deleted domain that is registered again keeps the spacing of its last visit.
        let rests = domains::rests_of_deleted(self.write, names).await?;
        let turns = self.write.visit_turns(&self.request, names.len()).await?;
        let mut rows = Vec::with_capacity(names.len());
        for (name, turn) in names.iter().zip(turns) {
            let Some(target) = wanted.get(name) else {
                continue;
            };
            let rest = rests.get(*name).copied().unwrap_or(self.now.0);
            let rests_until = rest.max(self.now.0);
            rows.push(domain::Model {
                account_id: self.caller.account.as_ref().map(|account| account.id),
                nominated_from: self.caller.network.map(|network| network.to_string()),
                not_before: rests_until,
                visit_due_at: Some(rests_until),
                visit_turn: turn,
                visit_requester: Some(self.request.requester.clone()),
                ..new_domain(name, target.domain.origin.scheme(), self.now)
            });
        }
        Ok(self.write.domains_insert(rows).await?)
    }

    async fn add_one(
        &self,
        adder: &mut SourceAdder<'_>,
        domain: &BatchDomain,
        registration: &AdmittedRegistration,
    ) -> Result<AddedSources> {
        let row = &domain.row;
        refuse_opted_out(row)?;
        if is_disputed(row)? && !self.caller.may(Permission::Curate) {
            return Err(disputed(row));
        }
        let is_first = domain.is_new && !domain.is_registered;
        if is_first {
            adder.counts.check_domains(self.context)?;
        }
        let added = adder
            .add(row, &registration.target, registration.approve)
            .await?;
        if is_first {
            adder.counts.added_domain();
        }
        Ok(added)
    }

    /// Notes what a registration has added to a domain.
    fn note(&self, ledger: &mut Ledger<'_>, domain: &mut BatchDomain, added: AddedSources) {
        if let Some((kind, url)) = &added.first {
            let account = self.caller.account.as_ref();
            let actor = account.map_or("anyone", |account| account.name.as_str());
            let data = json!({"kind": kind, "url": url});
            ledger.event(EventKind::DomainRegistered, &domain.row.name, actor, data);
        }
        domain.is_registered = true;
        domain.has_new_source |= added.sources;
        domain.sees_all = added.sees_all;
        domain.registrants_of.extend(added.registrants_of);
    }

    /// Whether a visit waits in a bulk, where the caller's turn may be an earlier one.
    fn may_move_forward(&self, row: &domain::Model) -> bool {
        let waits = row.visit_due_at.is_some() && row.visit_interval_us.is_none();
        let is_own = row.visit_requester.as_ref() == Some(&self.request.requester);
        waits && row.lease.is_none() && row.visit_turn >= 0 && !(is_own && self.request.in_bulk)
    }

    /// Makes the visits of domains with new sources due, gives those that wait in a bulk the caller's turn if it is
    /// earlier, and removes the new domains whose registrations were all refused. Existing domains of refused
    /// registrations do not change: not even a challenge tells the caller that they exist.
    async fn finish_domains(&self, domains: &mut BTreeMap<String, BatchDomain>) -> Result<()> {
        for one in domains.values().filter(|one| !one.is_new) {
            let id = one.row.id;
            if one.has_new_source || (one.is_registered && self.may_move_forward(&one.row)) {
                self.write.visit_turn_take(id, &self.request).await?;
            }
            if one.has_new_source {
                self.write
                    .domain_make_visit_due(id, self.now.0.max(one.row.not_before))
                    .await?;
            }
        }
        let unused = domains.values();
        let unused = unused.filter(|one| one.is_new && !one.is_registered);
        let unused: Vec<i64> = unused.map(|one| one.row.id).collect();
        self.write.domains_discard(&unused).await?;
        domains.retain(|_, one| one.is_registered);
        Ok(())
    }

    /// Updates the agents of a domain after another caller has registered some of its sources too: their coverage, and
    /// who may see them. For a new source there is nothing to update, but for a stranger the same work is done: the
    /// response time must not tell which URLs others have registered.
    async fn update_agents(&self, domain: &BatchDomain) -> Result<Touched> {
        let sources = &domain.registrants_of;
        let is_new_to_stranger = domain.has_new_source && !domain.sees_all;
        if sources.is_empty() && !is_new_to_stranger {
            return Ok(Touched::default());
        }
        let mut ledger = Ledger::new(self.now, self.context.entropy.as_ref());
        follow_coverage(self.context, self.write, &mut ledger, &domain.row).await?;
        for source in sources {
            if let Some(agent) = source.agent_id {
                let data = json!({"source": source.url, "registered": true});
                ledger.agent_event(EventKind::AgentUpdated, agent, SYSTEM, data);
            }
        }
        ledger.write(self.write).await
    }

    /// Approves the cards that wait at these targets.
    async fn approve(
        &self,
        targets: &[&Target],
        domains: &BTreeMap<String, BatchDomain>,
        ledger: &mut Ledger<'_>,
    ) -> Result<()> {
        let governance = &self.context.config.governance;
        let mut approved = BTreeSet::new();
        for target in targets {
            let Some(BatchDomain { row, .. }) = domains.get(&target.domain.name) else {
                continue;
            };
            let approved = &mut approved;
            approve_pending(
                governance,
                self.write,
                ledger,
                self.caller,
                row,
                target,
                approved,
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
        let provable = provable.filter(|row| is_provable(row));
        let provable: Vec<i64> = provable.map(|row| row.id).collect();
        ensure_challenges(self.context, self.write, &provable, account.id).await
    }
}
