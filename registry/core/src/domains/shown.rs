//! One domain as a caller sees it.

use std::collections::HashMap;

use a2a_registry_api::{
    Challenge, DomainView, EnrolledKey, OwnerFingerprint, OwnerVouch, Proof, ProofCheck, SourceView,
};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{self, agent, attempt, domain};
use uuid::Uuid;

use crate::context::Context;
use crate::domains::domain_access::DomainAccess;
use crate::domains::not_listed::not_listed;
use crate::domains::row_views::{check_view, proof_view};
use crate::domains::rows::DomainRows;
use crate::domains::visible_part::{VisiblePart, recorded_view};
use crate::error::Result;
use crate::ownership::challenges::challenge_views;
use crate::ownership::{keeper_at, owner_marks, why_no_challenge};
use crate::sources::source_name;
use crate::visibility::caller::Caller;

pub struct ShownDomain<'a> {
    context: &'a Context,
    caller: &'a Caller,
    row: &'a domain::Model,
    known: &'a DomainRows,
    part: VisiblePart,
}

impl<'a> ShownDomain<'a> {
    /// The part of a domain that a caller sees; `known` may include rows of other domains.
    pub fn of(
        context: &'a Context,
        caller: &'a Caller,
        row: &'a domain::Model,
        known: &'a DomainRows,
    ) -> Self {
        let mut part = VisiblePart::of(caller, row, known, context.now());
        if part.access.sees_all() {
            let own = known.agents.all.iter();
            let own = own.filter(|agent| agent.domain_id == row.id);
            part.agents.extend(own.map(|agent| agent.id));
        }
        Self {
            context,
            caller,
            row,
            known,
            part,
        }
    }

    /// Takes the attempts of its sources out of this map.
    pub async fn view(
        &self,
        attempts: &mut HashMap<i64, Vec<attempt::Model>>,
    ) -> Result<DomainView> {
        let row = self.row;
        let is_told = self.is_told();
        Ok(DomainView {
            domain: row.name.clone(),
            state: self.state(),
            generation: if is_told { row.generation } else { 1 },
            proofs: self.proofs(),
            owner: self.owner(),
            owner_vouch: self.owner_vouch(),
            contact: row.contact.clone().filter(|_| self.is_inside()),
            known_by: self.known_by(),
            keys: self.keys(),
            challenges: self.challenges(),
            checks: self.checks(),
            next_check: row.check_due_at.filter(|_| is_told).map(Timestamp),
            no_challenge: self.no_challenge(),
            sources: self.sources(attempts),
            agents: self.agents().map(|agent| agent.id).collect(),
            complete: self.part.access.sees_all(),
            not_listed: self.not_listed().await?,
            created_at: self.created_at(),
        })
    }

    /// Whether the caller sees more of the domain itself than an anonymous one.
    fn is_inside(&self) -> bool {
        self.part.access.is_inside()
    }

    fn is_told(&self) -> bool {
        self.part.access != DomainAccess::Nothing
    }

    fn state(&self) -> OpenEnum<DomainState> {
        match self.is_told() {
            true => self.row.state.0.clone(),
            false => DomainState::Unverified.into(),
        }
    }

    fn created_at(&self) -> Timestamp {
        let since = || self.part.registered_since();
        Timestamp(match self.is_told() {
            true => self.row.created_at,
            false => since().unwrap_or(self.context.now().0),
        })
    }

    fn proofs(&self) -> Vec<Proof> {
        let proofs = self.known.proofs.iter();
        proofs
            .filter(|proof| proof.domain_id == self.row.id && self.is_told())
            .map(|proof| proof_view(proof, self.part.access))
            .collect()
    }

    fn owner(&self) -> Option<String> {
        let mut owners = self.known.owners.iter();
        let present = self.row.owner_at(self.context.now());
        let owner = owners.find(|account| present == Some(account.id));
        owner
            .filter(|_| self.is_inside())
            .map(|account| account.name.clone())
    }

    fn owner_vouch(&self) -> Option<OwnerVouch> {
        let row = self.row;
        row.vouched_owner_at(self.context.now())?;
        let for_insiders = |text: &Option<String>| text.clone().filter(|_| self.is_inside());
        let view = OwnerVouch {
            since: Timestamp(row.vouched_since?),
            until: Timestamp(row.vouched_until?),
            by: for_insiders(&row.vouched_by),
            reason: for_insiders(&row.vouched_reason),
        };
        Some(view).filter(|_| self.is_told())
    }

    fn known_by(&self) -> Option<OwnerFingerprint> {
        let mut marks = self.known.marks.iter();
        marks
            .find(|marks| marks.domain_id == self.row.id && self.is_inside())
            .map(known_by)
    }

    fn keys(&self) -> Vec<EnrolledKey> {
        let keys = self.known.keys.iter();
        keys.filter(|key| key.domain_id == self.row.id && self.is_inside())
            .map(|key| EnrolledKey {
                kid: key.kid.clone(),
                thumbprint: key.thumbprint.clone(),
                at: Timestamp(key.created_at),
            })
            .collect()
    }

    fn challenges(&self) -> Vec<Challenge> {
        let challenges = self.known.challenges.iter();
        challenges
            .filter(|challenge| challenge.domain_id == self.row.id)
            .filter(|challenge| self.caller.is(Some(challenge.account_id)))
            .flat_map(|challenge| challenge_views(self.context, &self.row.name, challenge))
            .collect()
    }

    fn checks(&self) -> Vec<ProofCheck> {
        let checks = self.known.checks.iter();
        checks
            .filter(|check| check.domain_id == self.row.id)
            // The account that registered a domain does not see the checks of other accounts.
            .filter(|check| self.part.access.sees_all() || self.caller.is(check.account_id))
            .map(check_view)
            .collect()
    }

    /// Why the domain cannot be proved, for a signed-in caller; `None` if it can.
    fn no_challenge(&self) -> Option<String> {
        let account = self.caller.account.as_ref();
        account.and_then(|_| why_no_challenge(self.row))
    }

    /// The sources that the caller may see. Takes their attempts out of this map.
    pub fn sources(&self, attempts: &mut HashMap<i64, Vec<attempt::Model>>) -> Vec<SourceView> {
        let all = &self.known.sources;
        let live = all.iter().filter(|one| one.domain_id == self.row.id);
        let live = live.filter_map(|source| {
            let attempts = attempts.remove(&source.id);
            let standing = self.known.standings.of_source(source, all.iter());
            let coverage = standing.coverage();
            let view = self.part.source_view(source, attempts, coverage)?;
            Some((self.part.recorded_at(source), source, view))
        });
        let ended = self.part.ended_sources();
        let ended =
            ended.map(|(source, at)| (Some(at), source, recorded_view(source, Timestamp(at))));
        let mut shown: Vec<_> = live.chain(ended).collect();
        // The order of the rows would show which of them others had registered before.
        shown.sort_by(|(at, source, _), (other_at, other, _)| {
            let place = at.map(|at| (at, &source.url));
            place.cmp(&other_at.map(|at| (at, &other.url)))
        });
        let named = shown.into_iter().map(|(_, source, view)| SourceView {
            id: source_name(self.context, source),
            ..view
        });
        named.collect()
    }

    fn agents(&self) -> impl Iterator<Item = &'a agent::Model> {
        let all = self.known.agents.all.iter();
        all.filter(|agent| self.part.agents.contains(&agent.id))
    }

    /// Why sources and agents that the caller sees are not listed.
    async fn not_listed(&self) -> Result<Vec<String>> {
        if !self.is_inside() && self.part.own.is_empty() {
            return Ok(Vec::new());
        }
        let (known, part) = (self.known, &self.part);
        let sources = known.sources.iter().filter(|source| part.sees(source));
        let waiting: Vec<agent::Model> = self.agents().cloned().collect();
        // The reason of a hold is shown to the owner and curators only.
        let now = self.context.now();
        let keeper = |agent: &agent::Model| keeper_at(agent, self.row, &known.marks, now);
        let sees_all = part.access.sees_all();
        let is_told = |agent: &&agent::Model| sees_all || self.caller.is(keeper(agent));
        let told = waiting.iter().filter(is_told);
        let told: Vec<Uuid> = told.map(|one| one.id).collect();
        let mut holds = known.agents.holds.clone();
        holds.retain(|hold| told.contains(&hold.agent_id));
        not_listed(self.context, self.row, sources, &waiting, &holds).await
    }
}

fn known_by(row: &entity::owner_marks::Model) -> OwnerFingerprint {
    let marks = owner_marks(row);
    OwnerFingerprint {
        name_servers: marks.name_servers.into_iter().collect(),
        tls_key: marks.tls_key,
        card_keys: marks.card_keys.into_iter().collect(),
        at: Timestamp(row.seen_at),
    }
}
