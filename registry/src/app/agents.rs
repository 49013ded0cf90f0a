//! Agents one by one: the agent, its versions, its findings.

use a2a_card::{Finding, Severity, security_sentences};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::documents::AgentRecord;
use super::openness::{Openness, is_listed, looks_after, visible_to, visible_to_registrant};
use super::ownership::is_nobodys;
use super::page::{PageRequest, cut, page_size};
use super::signatures::KeyBinding;
use super::{App, AppError, Caller};
use crate::api::{
    Agent, Decision, FindingList, FindingView, Hit, HoldView, Match, Version, VersionList,
};
use crate::domain::role::Permission;
use crate::domain::timestamp::{DAY, Timestamp};
use crate::store::entity::{agent, version};
use crate::store::{agents, coverage, decisions, domains, ownership, versions};

/// Which version's findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct FindingsQuery {
    /// The digest of a version; the one that is shown where absent.
    pub version: Option<String>,
}

/// New versions in a day beyond which a card is said to flap (docs/model.md#two-digests).
const FLAPPING: i32 = 10;

impl App {
    /// One agent in full.
    ///
    /// # Errors
    /// `NotFound` where there is none, or none the caller may see.
    pub async fn agent_show(&self, caller: &Caller, agent: &str) -> Result<Agent, AppError> {
        let record = self.record_visible(caller, agent).await?;
        self.agent_view(caller, &record).await
    }

    /// How a caller sees an agent.
    pub(super) async fn agent_view(
        &self,
        caller: &Caller,
        record: &AgentRecord,
    ) -> Result<Agent, AppError> {
        let owner = self.owns(caller, &record.agent).await?;
        let holds = if caller.may(Permission::SeeAll) || owner {
            record.holds.iter().map(hold_view).collect()
        } else {
            Vec::new()
        };
        Ok(Agent {
            hit: Hit {
                summary: self.summary(record),
                matched: Match::default(),
            },
            security: security_sentences(&record.card),
            signature_verdict: record.signature_verdict(),
            card: record.card.clone(),
            decision: self.decision(record).await?,
            coverage: record.coverage(),
            holds,
        })
    }

    async fn decision(&self, record: &AgentRecord) -> Result<Decision, AppError> {
        let rows = decisions::decisions_on(&self.store, &[record.agent.id]).await?;
        let state = record.known.state;
        let made = rows
            .into_iter()
            .rev()
            .find(|row| row.version_id == record.version.id);
        Ok(match made {
            Some(row) => Decision {
                state,
                rules: vec![row.rule],
                by: row.actor,
                at: Timestamp(row.at),
                reason: row.reason,
                self_approved: row.self_approved,
            },
            None => Decision {
                state,
                rules: vec!["no_rule".into()],
                by: "policy".into(),
                at: Timestamp(record.version.observed_at),
                reason: None,
                self_approved: false,
            },
        })
    }

    /// The kept versions of an agent, newest first: those approved once, or all of them for whoever
    /// sees everything or owns the agent.
    ///
    /// # Errors
    /// `NotFound` as for the agent; `Invalid` for a foreign page token.
    pub async fn agent_versions(
        &self,
        caller: &Caller,
        agent: &str,
        page: &PageRequest,
    ) -> Result<VersionList, AppError> {
        let row = self.agent_visible(caller, agent).await?;
        let size = page_size(page.page_size)?;
        let all = caller.may(Permission::SeeAll) || self.owns(caller, &row).await?;
        let query = format!("versions of {} ({all})", row.id);
        let before: Option<Uuid> = match &page.page_token {
            Some(token) => Some(self.signer.position(&query, caller, token)?),
            None => None,
        };
        let mut rows =
            versions::version_page(&self.store, row.id, all, before, size as u64 + 1).await?;
        let more = cut(&mut rows, size);
        let next_page_token = more
            .then(|| {
                rows.last()
                    .and_then(|last| self.signer.token(&query, caller, &last.id))
            })
            .flatten();
        let served = row.approved_version;
        let binding = self.key_binding(row.domain_id).await?;
        let versions = rows
            .into_iter()
            .filter_map(|row| version_view(row, served, &binding))
            .collect();
        Ok(VersionList {
            versions,
            next_page_token,
        })
    }

    /// What ties the keys of a domain's cards to it.
    pub(super) async fn key_binding(&self, domain: i64) -> Result<KeyBinding, AppError> {
        let rows = domains::domains_by_ids(&self.store, &[domain]).await?;
        let mut bindings = KeyBinding::of_domains(&self.store, &rows).await?;
        Ok(bindings.remove(&domain).unwrap_or_default())
    }

    /// What lint found in a version: the one with that digest, or the one shown.
    ///
    /// # Errors
    /// `NotFound` as for the agent, and where there is no such version that the caller may see.
    pub async fn agent_findings(
        &self,
        caller: &Caller,
        agent: &str,
        query: &FindingsQuery,
    ) -> Result<FindingList, AppError> {
        let Some(digest) = &query.version else {
            let record = self.record_visible(caller, agent).await?;
            return self.findings_of(&record.agent, record.version);
        };
        let row = self.agent_visible(caller, agent).await?;
        let version = self.version_visible(caller, &row, digest).await?;
        self.findings_of(&row, version)
    }

    /// What was found in a version, and in how often the card changes.
    pub(super) fn findings_of(
        &self,
        agent: &agent::Model,
        version: version::Model,
    ) -> Result<FindingList, AppError> {
        let findings: Vec<Finding> = serde_json::from_str(&version.findings).map_err(|error| {
            AppError::internal(format!("findings of {} are broken: {error}", version.id))
        })?;
        let findings = findings.into_iter().chain(self.flapping(agent));
        Ok(FindingList {
            digest: version.digest,
            findings: findings.map(FindingView::from).collect(),
        })
    }

    /// The version of an agent with that digest, where the caller may see it.
    pub(super) async fn version_visible(
        &self,
        caller: &Caller,
        agent: &agent::Model,
        digest: &str,
    ) -> Result<version::Model, AppError> {
        let all = caller.may(Permission::SeeAll) || self.owns(caller, agent).await?;
        versions::version_by_digest(&self.store, agent.id, digest)
            .await?
            .filter(|version| all || version.ever_approved)
            .ok_or_else(|| AppError::not_found("version"))
    }

    /// The finding that a card changes too often: no single version can show it.
    fn flapping(&self, agent: &agent::Model) -> Option<Finding> {
        let today = self.now().0 - agent.changes_since < DAY;
        (today && agent.changes > FLAPPING).then(|| Finding {
            rule: "card.flapping".into(),
            severity: Severity::Warning,
            pointer: String::new(),
            found: format!("{} new versions in a day", agent.changes),
            wanted: format!("at most {FLAPPING}"),
            hint:
                "serve the same content from every instance, and keep what changes out of the card"
                    .into(),
            section: "docs/model.md#two-digests".into(),
        })
    }

    /// The row of an agent, by id or URN, where the caller may see it.
    pub(super) async fn agent_visible(
        &self,
        caller: &Caller,
        agent: &str,
    ) -> Result<agent::Model, AppError> {
        let missing = || AppError::not_found("agent");
        let row = match agent.parse::<Uuid>() {
            Ok(id) => agents::agents_by_ids(&self.store, &[id]).await?.pop(),
            Err(_) if agent.starts_with("urn:") => agents::agent_by_urn(&self.store, agent).await?,
            Err(_) => None,
        };
        let row = row.ok_or_else(missing)?;
        let holds = agents::holds_of(&self.store, &[row.id]).await?;
        if !self.is_of_known_domain(&row).await? {
            return Err(missing());
        }
        let listed = is_listed(&row, &holds);
        let is_held = !holds.is_empty();
        let allowed = visible_to(&row, Openness::of(listed, is_held), &[]);
        let labels = caller.labels();
        let is_allowed = allowed.iter().any(|label| labels.contains(label));
        if is_allowed || (!listed && self.has_registered(caller, &row, is_held).await?) {
            Ok(row)
        } else {
            Err(missing())
        }
    }

    /// Whether it is known what an agent's domain is. Where it is not, which is logged, nobody is shown the agent.
    pub(super) async fn is_of_known_domain(&self, agent: &agent::Model) -> Result<bool, AppError> {
        let rows = domains::domains_by_ids(&self.store, &[agent.domain_id]).await?;
        let Some(row) = rows.first() else {
            return Ok(false);
        };
        let state = row.state().inspect_err(|error| {
            tracing::error!(agent = %agent.id, %error, "an agent is not shown");
        });
        Ok(state.is_ok())
    }

    /// Whether the caller sees an agent that is not listed because it has registered a source of it.
    async fn has_registered(
        &self,
        caller: &Caller,
        agent: &agent::Model,
        is_held: bool,
    ) -> Result<bool, AppError> {
        if caller.account.is_none() || !visible_to_registrant(caller, agent, is_held) {
            return Ok(false);
        }
        let sources = domains::sources_of(&self.store, &[agent.domain_id]).await?;
        let feeding: Vec<i64> = sources
            .iter()
            .filter(|source| source.agent_id == Some(agent.id) && source.kind.known().is_some())
            .map(|source| source.id)
            .collect();
        let registrants = coverage::registrants_of(&self.store, &feeding).await?;
        Ok(registrants.iter().any(|one| caller.is(one.account_id)))
    }

    /// As [`App::agent_visible`], with everything that is shown of it.
    pub(super) async fn record_visible(
        &self,
        caller: &Caller,
        agent: &str,
    ) -> Result<AgentRecord, AppError> {
        let row = self.agent_visible(caller, agent).await?;
        self.records(&self.store, vec![row])
            .await?
            .pop()
            .ok_or_else(|| AppError::not_found("agent"))
    }

    /// Whether the caller has proved the agent to be its own, or registered its source while its domain is nobody's.
    pub(super) async fn owns(
        &self,
        caller: &Caller,
        agent: &agent::Model,
    ) -> Result<bool, AppError> {
        if !looks_after(caller, agent, true) {
            return Ok(false);
        }
        let domain = [agent.domain_id];
        let rows = domains::domains_by_ids(&self.store, &domain).await?;
        let marks = ownership::owner_marks_of(&self.store, &domain).await?;
        let nobodys = rows.iter().any(|row| is_nobodys(row, &marks));
        Ok(looks_after(caller, agent, nobodys))
    }
}

fn hold_view(row: &crate::store::entity::hold::Model) -> HoldView {
    HoldView {
        hold: row.shown(),
        reason: row.reason.clone(),
        since: Timestamp(row.since),
    }
}

/// A version as it is shown; `None`, which is logged, for one of which this build does not know what was decided on it.
fn version_view(
    row: version::Model,
    served: Option<Uuid>,
    binding: &KeyBinding,
) -> Option<Version> {
    let known = row
        .state()
        .and_then(|state| Ok((state, row.change_class()?)));
    let (state, change_class) = known
        .inspect_err(|error| tracing::error!(%error, "a version is left out"))
        .ok()?;
    Some(Version {
        signature_verdict: binding.verdict(Some(&row)),
        served: served == Some(row.id),
        digest: row.digest,
        content_digest: row.content_digest,
        observed_at: Timestamp(row.observed_at),
        state,
        change_class,
        wire_family: row.wire_family,
    })
}
