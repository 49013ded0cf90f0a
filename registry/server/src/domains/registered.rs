//! What is registered of a domain, by whom, and what would end with a registration.

use a2a_registry_domain::coverage::{Standing, lies_with_the_domain};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::{agent, domain, source};
use a2a_registry_store::{Write, agents, domains};
use uuid::Uuid;

use crate::admission::coverage::Standings;
use crate::error::AppError;

/// A domain's sources, who stands behind them, and the agents they feed.
pub(crate) struct Registered {
    pub(crate) sources: Vec<source::Model>,
    standings: Standings,
    pub(crate) agents: Vec<agent::Model>,
    /// Whether the domain has been proved, and by whom that holds.
    pub(crate) is_proved: bool,
    pub(crate) owner: Option<Uuid>,
}

impl Registered {
    /// As the database has it; the domain is locked by whoever calls.
    pub(crate) async fn load(write: &Write, row: &domain::Model) -> Result<Self, AppError> {
        let agents = agents::agents_of(write, &[row.id]).await?;
        let sources = domains::sources_of(write, &[row.id]).await?;
        Ok(Self {
            standings: Standings::load(write, [row], &sources).await?,
            sources,
            agents,
            is_proved: row.state != DomainState::Unverified,
            owner: row.owner_id,
        })
    }

    /// Whether an account has registered a source.
    pub(crate) fn is_own(&self, account: Uuid, source: i64) -> bool {
        let mut all = self.standings.registrants(source).iter();
        all.any(|one| one.account_id == Some(account))
    }

    /// Whether anybody else has.
    pub(crate) fn is_others(&self, account: Uuid, source: i64) -> bool {
        let mut all = self.standings.registrants(source).iter();
        all.any(|one| one.account_id != Some(account))
    }

    /// Whether a source is another's, who has proved the domain: what lies where only the domain puts it, and what its
    /// proof covers. Whoever else has registered that has only named it, and does not end it; nor while the proof lapses.
    fn is_owners(&self, account: Uuid, source: &source::Model) -> bool {
        let standing = || self.standings.of_source(source, self.sources.iter());
        self.is_proved
            && self.owner != Some(account)
            && (lies_there(source) || standing() == Standing::Covered)
    }

    /// The sources that end when an account takes back what it has registered: those that nobody else has, and with a
    /// catalog its entries, which are whose the catalog is.
    pub(crate) fn ending(&self, account: Uuid, withdrawn: &[i64]) -> Vec<i64> {
        let mut ending: Vec<i64> = self
            .sources
            .iter()
            .filter(|source| withdrawn.contains(&source.id))
            .filter(|source| !self.is_others(account, source.id))
            .filter(|source| !self.is_owners(account, source))
            .map(|source| source.id)
            .collect();
        let entries: Vec<i64> = self
            .sources
            .iter()
            .filter(|source| source.kind == SourceKind::Entry)
            .filter(|source| source.catalog_id.is_some_and(|id| ending.contains(&id)))
            .map(|source| source.id)
            .collect();
        ending.extend(entries);
        ending
    }

    /// The agents that no source feeds once these have ended.
    pub(crate) fn unfed(&self, ending: &[i64]) -> Vec<&agent::Model> {
        let fed = |agent: Uuid, stays: bool| {
            self.sources
                .iter()
                .filter(move |source| ending.contains(&source.id) != stays)
                .any(move |source| source.agent_id == Some(agent))
        };
        self.agents
            .iter()
            .filter(|agent| fed(agent.id, false) && !fed(agent.id, true))
            .collect()
    }
}

/// Whether an agent is approved, listed or not.
pub(crate) fn is_approved(agent: &agent::Model) -> bool {
    agent.approved_version.is_some()
}

/// Whether a source lies where only its domain puts it. Of one of a kind that only a later build knows nobody can say that
/// it does not, so that it ends for nobody else.
pub(crate) fn lies_there(source: &source::Model) -> bool {
    source.kind.known().is_none_or(lies_with_the_domain)
}
