//! Domains: what is registered, how it fares, and what may be asked of it.

use std::collections::HashMap;

use serde_json::json;
use time::OffsetDateTime;

use super::error::ErrorKind;
use super::ledger::Ledger;
use super::page::{PageRequest, cut, page_size};
use super::reviews::check_reason;
use super::standing::not_listed;
use super::{App, AppError, Caller};
use crate::api::{
    AttemptView, DomainList, DomainView, EnrolledKey, Proof, ProofCheck, Recrawl, RecrawlAccepted,
    SourceDay, SourceView, Vouch,
};
use crate::domain::event::EventKind;
use crate::domain::role::Permission;
use crate::domain::timestamp::{DAY, Timestamp};
use crate::store::entity::{agent, attempt, domain, proof, proof_check, source, source_day};
use crate::store::{Write, accounts, agents, crawl, domains, ownership};

/// What a caller may see of a domain (model.md section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// State, proofs' method and time, liveness.
    Outside,
    /// Attempts too, without addresses.
    Owner,
    /// Everything.
    Curator,
}

impl App {
    /// Live domains by name: all for whoever sees everything, otherwise the caller's own.
    ///
    /// # Errors
    /// `Unauthenticated` for anyone; `Invalid` for a foreign page token.
    pub async fn domain_list(
        &self,
        caller: &Caller,
        page: &PageRequest,
    ) -> Result<DomainList, AppError> {
        let account = caller.demand(Permission::Register)?;
        let own = (!caller.may(Permission::SeeAll)).then_some(account.id);
        let size = page_size(page.page_size)?;
        let after: Option<String> = match &page.page_token {
            Some(token) => Some(self.signer.position("domains", caller, token)?),
            None => None,
        };
        let mut rows =
            domains::domain_page(&self.store, own, after.as_deref(), size as u64 + 1).await?;
        let more = cut(&mut rows, size);
        let next_page_token = more
            .then(|| {
                rows.last()
                    .and_then(|last| self.signer.token("domains", caller, &last.name))
            })
            .flatten();
        Ok(DomainList {
            domains: self.domain_views(caller, rows).await?,
            next_page_token,
        })
    }

    /// One domain.
    ///
    /// # Errors
    /// `NotFound` where there is none, or none the caller may see.
    pub async fn domain_show(&self, caller: &Caller, domain: &str) -> Result<DomainView, AppError> {
        let row = self.domain_visible(caller, domain).await?;
        self.domain_view(caller, row.id).await
    }

    /// An admin's word for a domain: it counts as verified from now on.
    ///
    /// # Errors
    /// `Forbidden` for anyone but an admin; `NotFound`.
    pub async fn domain_vouch(
        &self,
        caller: &Caller,
        domain: &str,
        vouch: &Vouch,
    ) -> Result<DomainView, AppError> {
        let admin = caller.demand(Permission::Administer)?;
        check_reason(&vouch.reason)?;
        let row = self.domain_visible(caller, domain).await?;
        let now = self.now();
        let write = self.store.write().await?;
        let row = self.domain_locked(&write, &row).await?;
        let mut row = row;
        let standing = domains::proofs_of(&write, &[row.id]).await?;
        if standing.iter().all(|proof| proof.method != "operator") {
            write
                .proof_insert(proof::Model {
                    id: 0,
                    domain_id: row.id,
                    method: "operator".into(),
                    actor: admin.name.clone(),
                    account_id: None,
                    place: None,
                    nonce: None,
                    reason: Some(vouch.reason.clone()),
                    proved_at: now.0,
                    held_at: now.0,
                    absent_since: None,
                    absent_looks: 0,
                    ended_at: None,
                })
                .await?;
            let mut ledger = Ledger::new(now, self.entropy.as_ref());
            let data = json!({"reason": vouch.reason});
            ledger.event(EventKind::DomainVouched, &row.name, &admin.name, data);
            self.follow_proofs(&write, &mut ledger, &mut row, &admin.name)
                .await?;
            let touched = ledger.write(&write).await?;
            write.commit().await?;
            self.after_write(&touched);
        }
        self.domain_view(caller, row.id).await
    }

    /// Makes the next visit due at the earliest moment that politeness allows. While one waits, the
    /// answer is the same.
    ///
    /// # Errors
    /// `NotFound` where the caller may not ask for it.
    pub async fn domain_recrawl(
        &self,
        caller: &Caller,
        domain: &str,
        wish: &Recrawl,
    ) -> Result<RecrawlAccepted, AppError> {
        let seen = self.domain_visible(caller, domain).await?;
        refuse_opted_out(&seen)?;
        let now = self.now().0;
        let write = self.store.write().await?;
        let row = self.domain_locked(&write, &seen).await?;
        let id = row.id;
        let under_way = row.lease.is_some() && row.leased_until.is_some_and(|until| until > now);
        let earliest = now.max(row.not_before);
        let due = match row.visit_due_at {
            // One that waits already stays where it is, so that asking again changes nothing.
            Some(waiting) if !under_way => waiting.min(earliest),
            _ => earliest,
        };
        // A visit whose lease has run out may still end, as long as nobody else has made it.
        if row.lease.is_some() {
            write.domain_want(id, now).await?;
        }
        if !under_way {
            write.domain_make_due(id, due).await?;
        }
        if wish.full {
            write.sources_want_full(id).await?;
        }
        let actor = caller
            .account
            .as_ref()
            .map_or("anyone", |account| account.name.as_str());
        let mut ledger = Ledger::new(self.now(), self.entropy.as_ref());
        ledger.event(
            EventKind::DomainRecrawl,
            &row.name,
            actor,
            json!({"full": wish.full}),
        );
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        self.wake.visits.notify_one();
        Ok(RecrawlAccepted {
            domain: row.name,
            next_due: Timestamp(due),
        })
    }

    /// Ends a domain: its agents are retired, its name is free again.
    ///
    /// # Errors
    /// `Forbidden` for whoever neither owns nor curates it; `NotFound`.
    pub async fn domain_delete(&self, caller: &Caller, domain: &str) -> Result<(), AppError> {
        let account = caller.demand(Permission::Register)?;
        let row = self.domain_visible(caller, domain).await?;
        let own_unverified = row.account_id == Some(account.id) && row.state == "unverified";
        if !own_unverified && row.owner_id != Some(account.id) {
            caller.demand(Permission::Curate)?;
        }
        let now = self.now();
        let write = self.store.write().await?;
        let row = self.domain_locked(&write, &row).await?;
        let mut ledger = Ledger::new(now, self.entropy.as_ref());
        for agent in agents::agents_of(&write, &[row.id]).await? {
            let mut state = self.state_of(&write, agent.id).await?;
            ledger.retire(&mut state, &account.name, "the domain was deleted");
        }
        write.domain_end(row.id, now.0).await?;
        ledger.event(
            EventKind::DomainDeleted,
            &row.name,
            &account.name,
            json!({}),
        );
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        Ok(())
    }

    /// A domain as it stands now, held until the write ends: before its agents, in the order in which
    /// ingest takes them, so that no card comes in half-way and nobody waits in a circle.
    pub(super) async fn domain_locked(
        &self,
        write: &Write,
        seen: &domain::Model,
    ) -> Result<domain::Model, AppError> {
        domains::domain_by_name(write, &seen.name)
            .await?
            .filter(|row| row.id == seen.id)
            .ok_or_else(|| AppError::not_found("domain"))
    }

    /// The row of a domain that the caller may see.
    pub(super) async fn domain_visible(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<domain::Model, AppError> {
        let missing = || AppError::not_found("domain");
        let name = name.trim_end_matches('.').to_lowercase();
        let row = domains::domain_by_name(&self.store, &name)
            .await?
            .ok_or_else(missing)?;
        if sight(caller, &row) != Sight::Outside {
            return Ok(row);
        }
        let claims = ownership::challenges_of(&self.store, &[row.id]).await?;
        if claims
            .iter()
            .any(|claim| is(caller, Some(claim.account_id)))
        {
            return Ok(row);
        }
        let labels = caller.labels();
        let agents = agents::agents_of(&self.store, &[row.id]).await?;
        let listed = self.listed_of(agents, &labels).await?;
        if listed.is_empty() {
            Err(missing())
        } else {
            Ok(row)
        }
    }

    /// Those of some agents that are listed and visible to a caller with these labels.
    async fn listed_of(
        &self,
        rows: Vec<agent::Model>,
        labels: &[String],
    ) -> Result<Vec<agent::Model>, AppError> {
        let ids: Vec<uuid::Uuid> = rows.iter().map(|row| row.id).collect();
        let held: std::collections::HashSet<uuid::Uuid> = agents::holds_of(&self.store, &ids)
            .await?
            .into_iter()
            .map(|row| row.agent_id)
            .collect();
        Ok(rows
            .into_iter()
            .filter(|row| matches!(row.lifecycle.as_str(), "approved" | "deprecated"))
            .filter(|row| !held.contains(&row.id))
            .filter(|row| {
                super::documents::visible_to(row, true)
                    .iter()
                    .any(|label| labels.contains(label))
            })
            .collect())
    }

    /// How a caller sees a domain.
    pub(super) async fn domain_view(
        &self,
        caller: &Caller,
        id: i64,
    ) -> Result<DomainView, AppError> {
        let rows = domains::domains_by_ids(&self.store, &[id]).await?;
        let view = self.domain_views(caller, rows).await?.pop();
        let mut view = view.ok_or_else(|| AppError::not_found("domain"))?;
        let sources = domains::sources_of(&self.store, &[id]).await?;
        let ids: Vec<i64> = sources.iter().map(|row| row.id).collect();
        for row in crawl::source_days_of(&self.store, &ids).await? {
            let place = ids.iter().position(|id| *id == row.source_id);
            if let Some(source) = place.and_then(|place| view.sources.get_mut(place)) {
                source.days.push(day_view(&row));
            }
        }
        Ok(view)
    }

    async fn domain_views(
        &self,
        caller: &Caller,
        rows: Vec<domain::Model>,
    ) -> Result<Vec<DomainView>, AppError> {
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let sources = domains::sources_of(&self.store, &ids).await?;
        let source_ids: Vec<i64> = sources.iter().map(|row| row.id).collect();
        let mut attempts: HashMap<i64, Vec<attempt::Model>> = HashMap::new();
        for row in domains::attempts_of(&self.store, &source_ids).await? {
            attempts.entry(row.source_id).or_default().push(row);
        }
        let proofs = domains::proofs_of(&self.store, &ids).await?;
        let challenges = ownership::challenges_of(&self.store, &ids).await?;
        let checks = ownership::checks_of(&self.store, &ids).await?;
        let keys = ownership::enrolled_of(&self.store, &ids).await?;
        let owners: Vec<uuid::Uuid> = rows.iter().filter_map(|row| row.owner_id).collect();
        let owners = accounts::accounts_by_ids(&self.store, &owners).await?;
        let all = agents::agents_of(&self.store, &ids).await?;
        let listed = self.listed_of(all.clone(), &caller.labels()).await?;
        let agent_ids: Vec<uuid::Uuid> = all.iter().map(|agent| agent.id).collect();
        let holds = agents::holds_of(&self.store, &agent_ids).await?;
        let mut views = Vec::with_capacity(rows.len());
        for row in rows {
            let sight = sight(caller, &row);
            let shown = if sight == Sight::Outside {
                &listed
            } else {
                &all
            };
            views.push(DomainView {
                state: row.state.clone(),
                generation: row.generation,
                proofs: proofs
                    .iter()
                    .filter(|proof| proof.domain_id == row.id)
                    .map(|proof| proof_view(proof, sight))
                    .collect(),
                owner: owners
                    .iter()
                    .find(|account| row.owner_id == Some(account.id))
                    .filter(|_| sight != Sight::Outside)
                    .map(|account| account.name.clone()),
                contact: row.contact.clone().filter(|_| sight != Sight::Outside),
                keys: keys
                    .iter()
                    .filter(|key| key.domain_id == row.id && sight != Sight::Outside)
                    .map(|key| EnrolledKey {
                        kid: key.kid.clone(),
                        thumbprint: key.thumbprint.clone(),
                        at: Timestamp(key.created_at),
                    })
                    .collect(),
                challenges: challenges
                    .iter()
                    .filter(|challenge| challenge.domain_id == row.id)
                    .filter(|challenge| is(caller, Some(challenge.account_id)))
                    .flat_map(|challenge| self.challenge_views(&row.name, challenge))
                    .collect(),
                checks: checks
                    .iter()
                    .filter(|check| check.domain_id == row.id)
                    .filter(|check| sight != Sight::Outside || is(caller, check.account_id))
                    .map(check_view)
                    .collect(),
                next_check: row.check_due_at.map(Timestamp),
                sources: sources
                    .iter()
                    .filter(|source| source.domain_id == row.id)
                    .map(|source| source_view(source, attempts.remove(&source.id), sight))
                    .collect(),
                agents: shown
                    .iter()
                    .filter(|agent| agent.domain_id == row.id)
                    .map(|agent| agent.id)
                    .collect(),
                not_listed: match sight {
                    Sight::Outside => Vec::new(),
                    _ => not_listed(&row, &sources, &all, &holds),
                },
                created_at: Timestamp(row.created_at),
                domain: row.name,
            });
        }
        Ok(views)
    }
}

fn sight(caller: &Caller, row: &domain::Model) -> Sight {
    let own = is(caller, row.account_id) || is(caller, row.owner_id);
    if caller.may(Permission::SeeAll) {
        Sight::Curator
    } else if own {
        Sight::Owner
    } else {
        Sight::Outside
    }
}

/// Whether the caller is that account.
fn is(caller: &Caller, account: Option<uuid::Uuid>) -> bool {
    let own = caller.account.as_ref().map(|account| account.id);
    own.is_some() && own == account
}

/// A domain that wants not to be listed is not visited either.
pub(super) fn refuse_opted_out(row: &domain::Model) -> Result<(), AppError> {
    if row.opted_out_by.is_none() {
        return Ok(());
    }
    Err(AppError::new(
        ErrorKind::DomainDenied,
        format!("{} has opted out of being listed.", row.name),
    ))
}

fn check_view(row: &proof_check::Model) -> ProofCheck {
    ProofCheck {
        at: Timestamp(row.at),
        method: row.method.clone(),
        place: row.place.clone(),
        outcome: row.outcome.clone(),
        detail: row.detail.clone(),
    }
}

fn proof_view(row: &proof::Model, sight: Sight) -> Proof {
    Proof {
        method: row.method.clone(),
        at: Timestamp(row.proved_at),
        seen: Timestamp(row.held_at),
        missing_since: row.absent_since.map(Timestamp),
        reason: row.reason.clone().filter(|_| sight != Sight::Outside),
    }
}

fn day_view(row: &source_day::Model) -> SourceDay {
    let at = OffsetDateTime::from(Timestamp(i64::from(row.day).saturating_mul(DAY)));
    SourceDay {
        day: at.date().to_string(),
        looks: u32::try_from(row.looks).unwrap_or(0),
        good: u32::try_from(row.good).unwrap_or(0),
    }
}

fn source_view(
    row: &source::Model,
    attempts: Option<Vec<attempt::Model>>,
    sight: Sight,
) -> SourceView {
    let mut attempts: Vec<AttemptView> = attempts
        .unwrap_or_default()
        .into_iter()
        .map(|row| AttemptView {
            at: Timestamp(row.at),
            outcome: row.outcome,
            status: row.status.and_then(|status| u16::try_from(status).ok()),
            address: row.address.filter(|_| sight == Sight::Curator),
            detail: row.detail,
            url: row.url,
        })
        .collect();
    if sight == Sight::Outside {
        attempts.clear();
    }
    let last_attempt = (!attempts.is_empty()).then(|| attempts.remove(0));
    SourceView {
        url: row.url.clone(),
        kind: row.kind.clone(),
        state: row.liveness.clone(),
        last_attempt,
        attempts,
        next_due: Some(Timestamp(row.next_due_at)),
        days: Vec::new(),
    }
}
