//! One domain as a caller sees it.

use std::collections::HashMap;

use a2a_registry_api::{
    Challenge, DomainView, EndpointVouch, EnrolledKey, OwnerFingerprint, OwnerVouch, Proof,
    ProofCheck, SourceCredentialView, SourceView,
};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{self, agent, domain, endpoint_permission, fetch_attempt, source};
use uuid::Uuid;

use crate::context::AppContext;
use crate::domains::domain_access::DomainAccess;
use crate::domains::domain_rows::DomainRows;
use crate::domains::row_views::{proof_check_view, proof_view};
use crate::domains::source_credential::source_credential_view;
use crate::domains::unlisted_reasons::load_unlisted_reasons;
use crate::domains::visible_contents::{VisibleDomainContents, source_registration_view};
use crate::error::Result;
use crate::ownership::challenges::challenge_views;
use crate::ownership::{agent_owner_at, challenge_unavailable_reason, parse_owner_fingerprint};
use crate::secrets::source_credentials::{find_source_credential, is_credential_in_force};
use crate::sources::public_source_id;
use crate::visibility::caller::Caller;

pub struct DomainPresenter<'a> {
    context: &'a AppContext,
    caller: &'a Caller,
    row: &'a domain::Model,
    rows: &'a DomainRows,
    contents: VisibleDomainContents,
}

impl<'a> DomainPresenter<'a> {
    /// Creates the presenter of the part of a domain that a caller sees; `rows` may include rows of other domains.
    pub fn new(
        context: &'a AppContext,
        caller: &'a Caller,
        row: &'a domain::Model,
        rows: &'a DomainRows,
    ) -> Self {
        let mut contents = VisibleDomainContents::for_caller(caller, row, rows, context.now());
        if contents.access.sees_all() {
            let own = rows.agents.all.iter();
            let own = own.filter(|agent| agent.domain_id == row.id);
            contents.agents.extend(own.map(|agent| agent.id));
        }
        Self {
            context,
            caller,
            row,
            rows,
            contents,
        }
    }

    /// Takes the attempts of its sources out of this map.
    pub async fn view(
        &self,
        attempts: &mut HashMap<i64, Vec<fetch_attempt::Model>>,
    ) -> Result<DomainView> {
        let row = self.row;
        let sees_domain = self.sees_domain();
        Ok(DomainView {
            domain: row.name.clone(),
            state: self.state(),
            generation: if sees_domain { row.generation } else { 1 },
            proofs: self.proofs(),
            owner: self.owner(),
            owner_vouch: self.owner_vouch(),
            endpoint_vouch: self.endpoint_vouch(),
            endpoint_checks_off: self.endpoint_permission().is_some_and(|one| one.checks_off),
            contact: row.contact.clone().filter(|_| self.sees_details()),
            known_by: self.owner_fingerprint(),
            keys: self.enrolled_keys(),
            challenges: self.challenges(),
            checks: self.proof_checks(),
            next_check: row.check_due_at.filter(|_| sees_domain).map(Timestamp),
            no_challenge: self.no_challenge_reason(),
            sources: self.sources(attempts),
            agents: self.agents().map(|agent| agent.id).collect(),
            complete: self.contents.access.sees_all(),
            not_listed: self.unlisted_reasons().await?,
            created_at: self.created_at(),
        })
    }

    /// Whether the caller sees more of the domain itself than an anonymous one.
    fn sees_details(&self) -> bool {
        self.contents.access.sees_details()
    }

    fn sees_domain(&self) -> bool {
        self.contents.access != DomainAccess::Hidden
    }

    fn state(&self) -> OpenEnum<DomainState> {
        match self.sees_domain() {
            true => self.row.state.0.clone(),
            false => DomainState::Unverified.into(),
        }
    }

    fn created_at(&self) -> Timestamp {
        let since = || self.contents.first_registered_at();
        Timestamp(match self.sees_domain() {
            true => self.row.created_at,
            false => since().unwrap_or(self.context.now().0),
        })
    }

    fn proofs(&self) -> Vec<Proof> {
        let proofs = self.rows.proofs.iter();
        proofs
            .filter(|proof| proof.domain_id == self.row.id && self.sees_domain())
            .map(|proof| proof_view(proof, self.contents.access))
            .collect()
    }

    fn owner(&self) -> Option<String> {
        let mut owners = self.rows.owners.iter();
        let present = self.row.domain_owner_at(self.context.now());
        let owner = owners.find(|account| present == Some(account.id));
        owner
            .filter(|_| self.sees_details())
            .map(|account| account.name.clone())
    }

    fn owner_vouch(&self) -> Option<OwnerVouch> {
        let row = self.row;
        row.vouched_owner_at(self.context.now())?;
        let if_details_visible =
            |text: &Option<String>| text.clone().filter(|_| self.sees_details());
        let view = OwnerVouch {
            since: Timestamp(row.vouched_since?),
            until: Timestamp(row.vouched_until?),
            by: if_details_visible(&row.vouched_by),
            reason: if_details_visible(&row.vouched_reason),
        };
        Some(view).filter(|_| self.sees_domain())
    }

    /// What was said about checks of its endpoints, if the caller sees that.
    fn endpoint_permission(&self) -> Option<&endpoint_permission::Model> {
        let permission = self.rows.endpoint_permissions.get(&self.row.id);
        permission.filter(|_| self.sees_details())
    }

    fn endpoint_vouch(&self) -> Option<EndpointVouch> {
        let permission = self.endpoint_permission()?;
        let in_force = permission.vouched_generation == Some(self.row.generation);
        let view = EndpointVouch {
            since: Timestamp(permission.vouched_at?),
            by: permission.vouched_by.clone()?,
            reason: permission.vouched_reason.clone()?,
        };
        Some(view).filter(|_| in_force)
    }

    fn owner_fingerprint(&self) -> Option<OwnerFingerprint> {
        let mut marks = self.rows.fingerprints.iter();
        marks
            .find(|marks| marks.domain_id == self.row.id && self.sees_details())
            .map(owner_fingerprint_view)
    }

    fn enrolled_keys(&self) -> Vec<EnrolledKey> {
        let keys = self.rows.enrolled_keys.iter();
        keys.filter(|key| key.domain_id == self.row.id && self.sees_details())
            .map(|key| EnrolledKey {
                kid: key.kid.clone(),
                thumbprint: key.thumbprint.clone(),
                at: Timestamp(key.created_at),
            })
            .collect()
    }

    fn challenges(&self) -> Vec<Challenge> {
        let challenges = self.rows.challenges.iter();
        challenges
            .filter(|challenge| challenge.domain_id == self.row.id)
            .filter(|challenge| self.caller.is_account(Some(challenge.account_id)))
            .flat_map(|challenge| challenge_views(self.context, &self.row.name, challenge))
            .collect()
    }

    fn proof_checks(&self) -> Vec<ProofCheck> {
        let checks = self.rows.checks.iter();
        checks
            .filter(|check| check.domain_id == self.row.id)
            // The account that registered a domain does not see the checks of other accounts.
            .filter(|check| {
                self.contents.access.sees_all() || self.caller.is_account(check.account_id)
            })
            .map(proof_check_view)
            .collect()
    }

    /// Tells a signed-in caller why the domain cannot be proved; `None` if it can.
    fn no_challenge_reason(&self) -> Option<String> {
        let account = self.caller.account.as_ref();
        account.and_then(|_| challenge_unavailable_reason(self.row))
    }

    /// The sources that the caller may see. Takes their attempts out of this map.
    pub fn sources(
        &self,
        attempts: &mut HashMap<i64, Vec<fetch_attempt::Model>>,
    ) -> Vec<SourceView> {
        let all = &self.rows.sources;
        let live = all.iter().filter(|one| one.domain_id == self.row.id);
        let live = live.filter_map(|source| {
            let attempts = attempts.remove(&source.id);
            let coverage_level = self
                .rows
                .coverage_evidence
                .source_coverage(source, all.iter());
            let coverage = coverage_level.coverage();
            let view = self.contents.source_view(source, attempts, coverage)?;
            let credential = self.credential(source, &view);
            let view = SourceView { credential, ..view };
            Some((self.contents.recorded_at(source), source, view))
        });
        let ended = self.contents.ended_sources();
        let ended = ended.map(|(source, at)| {
            (
                Some(at),
                source,
                source_registration_view(source, Timestamp(at)),
            )
        });
        let mut views: Vec<_> = live.chain(ended).collect();
        // The order of the rows would reveal which sources others had registered before.
        views.sort_by(|(at, source, _), (other_at, other, _)| {
            let place = at.map(|at| (at, &source.url));
            place.cmp(&other_at.map(|at| (at, &other.url)))
        });
        let named = views.into_iter().map(|(_, source, view)| SourceView {
            id: public_source_id(self.context, source),
            ..view
        });
        named.collect()
    }

    /// The credential of a source, for callers who see more of the source than that they have registered it.
    fn credential(
        &self,
        source: &source::Model,
        view: &SourceView,
    ) -> Option<SourceCredentialView> {
        if !self.contents.sees_source_results(source) && view.agent.is_none() {
            return None;
        }
        let now = self.context.now();
        let in_force = self.rows.credentials.iter();
        let in_force = in_force.filter(|row| is_credential_in_force(row, self.row, now));
        let row = find_source_credential(in_force, source.id, source.catalog_id)?;
        Some(source_credential_view(row, self.sees_details()))
    }

    fn agents(&self) -> impl Iterator<Item = &'a agent::Model> {
        let all = self.rows.agents.all.iter();
        all.filter(|agent| self.contents.agents.contains(&agent.id))
    }

    /// Explains why sources and agents that the caller sees are not listed.
    async fn unlisted_reasons(&self) -> Result<Vec<String>> {
        if !self.sees_details() && self.contents.registered_sources.is_empty() {
            return Ok(Vec::new());
        }
        let (rows, part) = (self.rows, &self.contents);
        let sources = rows
            .sources
            .iter()
            .filter(|source| part.sees_source_results(source));
        let visible_agents: Vec<agent::Model> = self.agents().cloned().collect();
        // The reason of a hold is shown to the owner and curators only.
        let now = self.context.now();
        let keeper =
            |agent: &agent::Model| agent_owner_at(agent, self.row, &rows.fingerprints, now);
        let sees_all = part.access.sees_all();
        let is_told = |agent: &&agent::Model| sees_all || self.caller.is_account(keeper(agent));
        let agents_with_visible_holds = visible_agents.iter().filter(is_told);
        let agent_ids: Vec<Uuid> = agents_with_visible_holds.map(|one| one.id).collect();
        let mut holds = rows.agents.holds.clone();
        holds.retain(|hold| agent_ids.contains(&hold.agent_id));
        load_unlisted_reasons(self.context, self.row, sources, &visible_agents, &holds).await
    }
}

fn owner_fingerprint_view(row: &entity::owner_fingerprint::Model) -> OwnerFingerprint {
    let marks = parse_owner_fingerprint(row);
    OwnerFingerprint {
        name_servers: marks.name_servers.into_iter().collect(),
        tls_key: marks.tls_key,
        card_keys: marks.card_keys.into_iter().collect(),
        at: Timestamp(row.seen_at),
    }
}
