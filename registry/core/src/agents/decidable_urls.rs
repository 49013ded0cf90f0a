//! Decidable URLs: the addresses by which gateways ask about an agent. An address that is written into a card proves
//! nothing, so only those count that are on a host which the agent's domain has proved, or for which an admin vouches.

use std::collections::BTreeSet;

use a2a_registry_domain::coverage::DomainCoverageFacts;
use a2a_registry_domain::ownership::Method;
use url::Url;

use crate::agents::records::AgentRecord;
use crate::process_state::agent_cache::ApprovedUrl;

/// The URLs of the agent's approved interfaces, as [`normalize_url`] writes them.
pub fn approved_urls(record: &AgentRecord) -> Vec<ApprovedUrl> {
    let is_approved = record.agent.approved_version == Some(record.version.id);
    if !is_approved || record.agent.retired_at.is_some() {
        return Vec::new();
    }
    let urls = record.card.interfaces.iter().filter_map(|interface| {
        let url = parse_interface_url(&interface.url)?;
        Some(ApprovedUrl {
            is_own: is_own_origin(record, &url.origin().ascii_serialization()),
            url: String::from(url),
        })
    });
    let urls: BTreeSet<ApprovedUrl> = urls.collect();
    urls.into_iter().collect()
}

/// The URL of an interface in the form in which URLs are compared; `None` for what is no web address.
pub fn normalize_url(url: &str) -> Option<String> {
    parse_interface_url(url).map(String::from)
}

/// The key in the index of a URL that counts by itself, or of one that needs a vouch for the endpoints of its host.
pub fn approved_url_key(url: &str, is_own: bool) -> String {
    match is_own {
        true => format!("decide:{url}"),
        false => format!("named:{url}"),
    }
}

fn parse_interface_url(url: &str) -> Option<Url> {
    let mut url = Url::parse(url.trim()).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_plain = url.username().is_empty() && url.password().is_none();
    url.set_fragment(None);
    (is_web && is_plain).then_some(url)
}

fn is_own_origin(record: &AgentRecord, origin: &str) -> bool {
    let (name, zones) = (&record.agent.domain, &record.proved_zones);
    let mut methods = record.proof_methods.split_whitespace();
    let is_vouched = methods.any(|method| method == Method::Operator.as_str())
        && record.states.coverage_level.is_admitted();
    (is_vouched && origin == record.domain_origin)
        || (record.has_covering_proof() && is_proved_origin(name, zones, origin))
}

/// Whether a proof of the domain proves an origin. A proof is about a host name on port 443; a record with
/// `policy=subdomains` also proves the hosts below its zone.
fn is_proved_origin(domain: &str, zones: &[String], origin: &str) -> bool {
    let proved = DomainCoverageFacts {
        name: domain.to_owned(),
        origin: format!("https://{domain}"),
        zones: zones.to_vec(),
        ..DomainCoverageFacts::default()
    };
    proved.covers_origin(origin)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::admission::coverage::url_origin;

    #[test]
    fn only_hosts_on_the_usual_port_of_the_domain_and_its_zones_are_proved() {
        let zones = vec!["corp.example".to_owned()];
        for (url, by_domain, by_zone) in [
            ("https://agents.corp.example/a2a", true, true),
            ("https://AGENTS.corp.example:443/a2a", true, true),
            ("https://corp.example/a2a", false, true),
            ("https://other.corp.example/a2a", false, true),
            ("https://evilcorp.example/a2a", false, false),
            ("https://agents.corp.example.evil.example/", false, false),
            ("https://agents.corp.example:8443/a2a", false, false),
            ("http://agents.corp.example/a2a", false, false),
        ] {
            let origin = url_origin(url);
            let domain = "agents.corp.example";
            assert_eq!(is_proved_origin(domain, &[], &origin), by_domain, "{url}");
            assert_eq!(is_proved_origin(domain, &zones, &origin), by_zone, "{url}");
        }
    }

    #[test]
    fn a_url_has_one_form() {
        let form = "https://agents.corp.example/a2a";
        for same in [
            form,
            " https://Agents.Corp.Example:443/a2a ",
            "https://agents.corp.example/x/../a2a#part",
        ] {
            assert_eq!(normalize_url(same).as_deref(), Some(form), "{same}");
        }
        for other in [
            "https://agents.corp.example/a2a/",
            "https://agents.corp.example/a2a?x",
            "https://agents.corp.example/A2A",
        ] {
            assert_ne!(normalize_url(other).as_deref(), Some(form), "{other}");
        }
        for no_address in [
            "",
            "agents.corp.example",
            "agents.corp.example:443",
            "ftp://agents.corp.example/a2a",
            "https://agents.corp.example@evil.example/",
            "https://user:word@agents.corp.example/",
        ] {
            assert_eq!(normalize_url(no_address), None, "{no_address}");
        }
    }
}
