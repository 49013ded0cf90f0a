//! Which endpoint of an agent may be checked: one on a host that the proof of the agent's own domain covers, or for
//! which an admin has vouched, so that nobody makes the registry ask a third party.

use std::collections::{HashMap, HashSet};

use a2a_card::AgentCard;
use a2a_crawler::endpoint_check::EndpointAddress;
use a2a_registry_domain::coverage::{Coverage, DomainCoverageFacts};
use a2a_registry_store::entity::{agent, domain, endpoint_permission};
use a2a_registry_store::{Executor, domains, endpoint_checks};
use uuid::Uuid;

use crate::admission::coverage::CoverageEvidence;
use crate::agents::records::{AgentRecord, load_agent_records};
use crate::config::CheckEndpoints;
use crate::context::AppContext;
use crate::error::Result;

/// What permits and forbids checks of an agent's endpoints.
#[derive(Debug, Clone, Copy)]
pub struct EndpointGrants<'a> {
    /// The agent's domain, if an account has proved it and the proof covers the agent's card.
    pub proved_domain: Option<&'a DomainCoverageFacts>,
    /// Origins (scheme, host and port) for which an admin has vouched.
    pub vouched_origins: &'a HashSet<String>,
    /// Origins whose owner has opted out, or has turned checks off.
    pub refused_origins: &'a HashSet<String>,
}

impl EndpointGrants<'_> {
    fn permit(self, origin: &str) -> bool {
        let is_proved = self
            .proved_domain
            .is_some_and(|domain| domain.owner.is_some() && domain.covers_origin(origin));
        (is_proved || self.vouched_origins.contains(origin))
            && !self.refused_origins.contains(origin)
    }
}

/// The address to check: of those that may be checked the first one in the order of preference.
pub fn select_endpoint(card: &AgentCard, grants: EndpointGrants<'_>) -> Option<EndpointAddress> {
    EndpointAddress::from_card(card)
        .into_iter()
        .find(|address| grants.permit(&address.origin()))
}

/// The addresses to check of those of these agents that are listed and have one.
pub async fn select_endpoints(
    context: &AppContext,
    db: &impl Executor,
    rows: Vec<agent::Model>,
) -> Result<HashMap<Uuid, EndpointAddress>> {
    if context.config().crawler.check_endpoints == CheckEndpoints::Off {
        return Ok(HashMap::new());
    }
    let mut records = load_agent_records(db, rows).await?;
    records.retain(AgentRecord::is_listed);
    let hosts = EndpointHosts::load(context, db, &records).await?;
    let selected = records.iter().filter_map(|record| {
        let address = hosts.select(record)?;
        Some((record.agent.id, address))
    });
    Ok(selected.collect())
}

/// The domains of agents and of their endpoints, with what permits and forbids checks.
struct EndpointHosts {
    coverage: CoverageEvidence,
    vouched_origins: HashSet<String>,
    refused_origins: HashSet<String>,
    /// Domains of agents whose owner refuses checks.
    refusing_domains: HashSet<i64>,
}

impl EndpointHosts {
    async fn load(
        context: &AppContext,
        db: &impl Executor,
        records: &[AgentRecord],
    ) -> Result<Self> {
        let own_ids: HashSet<i64> = records.iter().map(|one| one.agent.domain_id).collect();
        let own_ids: Vec<i64> = own_ids.into_iter().collect();
        let own = domains::domains_by_ids(db, &own_ids).await?;
        let addresses = records
            .iter()
            .flat_map(|record| EndpointAddress::from_card(&record.card));
        let names: HashSet<String> = addresses
            .filter_map(|address| origin_domain_name(&address.origin()).map(str::to_owned))
            .collect();
        let names: Vec<String> = names.into_iter().collect();
        let others = endpoint_checks::live_domains_by_names(db, &names).await?;
        let ids: Vec<i64> = own.iter().chain(&others).map(|row| row.id).collect();
        let permissions = endpoint_checks::endpoint_permissions_by_domain(db, &ids).await?;
        let refuses = |row: &&domain::Model| {
            let turned_off = permissions.get(&row.id).is_some_and(|one| one.checks_off);
            turned_off || row.opted_out_by.is_some()
        };
        let is_vouched = |row: &&domain::Model| {
            permissions
                .get(&row.id)
                .is_some_and(|permission| is_vouch_in_force(permission, row))
        };
        Ok(Self {
            coverage: CoverageEvidence::load(db, &own, std::iter::empty(), context.now()).await?,
            vouched_origins: others
                .iter()
                .filter(is_vouched)
                .map(domain::Model::domain_origin)
                .collect(),
            refused_origins: others
                .iter()
                .filter(refuses)
                .flat_map(|row| ["https", "http"].map(|scheme| format!("{scheme}://{}", row.name)))
                .collect(),
            refusing_domains: own.iter().filter(refuses).map(|row| row.id).collect(),
        })
    }

    fn select(&self, record: &AgentRecord) -> Option<EndpointAddress> {
        let domain = record.agent.domain_id;
        if self.refusing_domains.contains(&domain) {
            return None;
        }
        let is_covered = record.coverage() == Coverage::Covered;
        let grants = EndpointGrants {
            proved_domain: self.coverage.domain_facts(domain).filter(|_| is_covered),
            vouched_origins: &self.vouched_origins,
            refused_origins: &self.refused_origins,
        };
        select_endpoint(&record.card, grants)
    }
}

/// The origins for whose endpoints an admin vouches.
pub async fn load_vouched_origins(db: &impl Executor) -> Result<HashSet<String>> {
    let vouches = endpoint_checks::endpoint_vouches(db).await?;
    let ids: Vec<i64> = vouches.iter().map(|one| one.domain_id).collect();
    let mut rows = domains::domains_by_ids(db, &ids).await?;
    rows.retain(|row| {
        let mut own = vouches.iter().filter(|one| one.domain_id == row.id);
        own.any(|permission| is_vouch_in_force(permission, row))
    });
    Ok(rows.iter().map(domain::Model::domain_origin).collect())
}

/// Whether an admin's vouch for the endpoints of a domain is in force: it ends with the generation of the domain.
pub fn is_vouch_in_force(permission: &endpoint_permission::Model, row: &domain::Model) -> bool {
    row.deleted_at.is_none() && permission.vouched_generation == Some(row.generation)
}

/// The name under which the domain of an origin is registered: host, and port if it is not the scheme's own.
fn origin_domain_name(origin: &str) -> Option<&str> {
    origin.split_once("://").map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use a2a_card::Interface;

    use super::*;

    fn card(urls: &[&str]) -> AgentCard {
        AgentCard {
            interfaces: urls
                .iter()
                .map(|url| Interface {
                    url: (*url).to_owned(),
                    binding: "JSONRPC".to_owned(),
                    protocol_version: Some("1.0".to_owned()),
                    tenant: None,
                })
                .collect(),
            ..AgentCard::default()
        }
    }

    fn proved() -> DomainCoverageFacts {
        DomainCoverageFacts {
            name: "a.example".into(),
            origin: "https://a.example".into(),
            owner: Some(Uuid::from_u128(1)),
            zones: vec!["a.example".into()],
            same_owner_origins: vec!["https://b.example".into()],
            ..DomainCoverageFacts::default()
        }
    }

    fn selected(
        urls: &[&str],
        domain: Option<&DomainCoverageFacts>,
        vouched: &[&str],
        refused: &[&str],
    ) -> Option<String> {
        let set = |origins: &[&str]| origins.iter().map(|one| (*one).to_owned()).collect();
        let grants = EndpointGrants {
            proved_domain: domain,
            vouched_origins: &set(vouched),
            refused_origins: &set(refused),
        };
        select_endpoint(&card(urls), grants).map(|address| address.url.to_string())
    }

    #[test]
    fn a_proof_permits_the_hosts_that_it_covers() {
        let proved = proved();
        for url in [
            "https://a.example/rpc",
            "https://a.example:443/rpc",
            "https://deep.in.a.example/rpc",
            "https://b.example/rpc",
        ] {
            assert!(selected(&[url], Some(&proved), &[], &[]).is_some(), "{url}");
            assert_eq!(selected(&[url], None, &[], &[]), None, "{url}, nomination");
            let unproved = DomainCoverageFacts {
                owner: None,
                ..proved.clone()
            };
            assert_eq!(selected(&[url], Some(&unproved), &[], &[]), None, "{url}");
        }
        for url in [
            "https://c.example/rpc",
            "http://a.example/rpc",
            "https://a.example:8443/rpc",
            "http://deep.in.a.example/rpc",
            "https://nota.example/rpc",
            "https://a.example.c.example/rpc",
            "https://a.example@c.example/rpc",
            "http://10.0.0.1/rpc",
        ] {
            assert_eq!(selected(&[url], Some(&proved), &[], &[]), None, "{url}");
        }
    }

    #[test]
    fn a_vouch_permits_exactly_one_origin() {
        let vouched = ["http://10.0.0.1:9000"];
        let url = "http://10.0.0.1:9000/rpc";
        assert_eq!(selected(&[url], None, &vouched, &[]), Some(url.to_owned()));
        for other in [
            "http://10.0.0.1/rpc",
            "http://10.0.0.1:9001/rpc",
            "https://10.0.0.1:9000/rpc",
            "http://10.0.0.2:9000/rpc",
        ] {
            assert_eq!(selected(&[other], None, &vouched, &[]), None, "{other}");
        }
    }

    #[test]
    fn a_refusal_outweighs_every_permission() {
        let proved = proved();
        let own = "https://a.example";
        let url = "https://a.example/rpc";
        assert_eq!(selected(&[url], Some(&proved), &[own], &[own]), None);
        let other = "https://b.example/rpc";
        assert_eq!(
            selected(&[url, other], Some(&proved), &[], &[own]),
            Some(other.to_owned())
        );
    }

    #[test]
    fn an_endpoint_of_others_is_passed_over() {
        let proved = proved();
        let urls = ["https://c.example/rpc", "https://a.example/rpc"];
        assert_eq!(
            selected(&urls, Some(&proved), &[], &[]),
            Some(urls[1].to_owned())
        );
    }
}
