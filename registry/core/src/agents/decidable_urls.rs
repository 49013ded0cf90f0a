//! Decidable URLs: the addresses by which gateways ask about an agent. An address that is written into a card proves
//! nothing, so only those count that are on a host which the agent's domain has proved.

use std::collections::BTreeSet;

use url::Url;

use crate::agents::records::AgentRecord;

/// The URLs of the agent's approved interfaces on hosts that its domain has proved, as [`normalize_url`] writes them.
pub fn decidable_urls(record: &AgentRecord) -> Vec<String> {
    let is_approved = record.agent.approved_version == Some(record.version.id);
    if !is_approved || record.agent.retired_at.is_some() || !record.has_covering_proof() {
        return Vec::new();
    }
    let urls = record.card.interfaces.iter().filter_map(|interface| {
        let url = parse_interface_url(&interface.url)?;
        is_proved_host(&url, &record.agent.domain, &record.proved_zones).then(|| String::from(url))
    });
    let urls: BTreeSet<String> = urls.collect();
    urls.into_iter().collect()
}

/// The URL of an interface in the form in which URLs are compared; `None` for what is no web address.
pub fn normalize_url(url: &str) -> Option<String> {
    parse_interface_url(url).map(String::from)
}

/// The key of a decidable URL in the index.
pub fn decidable_url_key(url: &str) -> String {
    format!("decide:{url}")
}

fn parse_interface_url(url: &str) -> Option<Url> {
    let mut url = Url::parse(url.trim()).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_plain = url.username().is_empty() && url.password().is_none();
    url.set_fragment(None);
    (is_web && is_plain).then_some(url)
}

/// Whether a proof of the domain proves the host of a URL. A proof is about a host name on port 443; a record with
/// `policy=subdomains` also proves the hosts below its zone.
fn is_proved_host(url: &Url, domain: &str, zones: &[String]) -> bool {
    let (Some(host), "https", None) = (url.host_str(), url.scheme(), url.port()) else {
        return false;
    };
    let is_in_zone = |zone: &String| {
        let front = host.strip_suffix(zone.as_str());
        front.is_some_and(|front| front.is_empty() || front.ends_with('.'))
    };
    host == domain || zones.iter().any(is_in_zone)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
            let parsed = parse_interface_url(url).unwrap();
            let domain = "agents.corp.example";
            assert_eq!(is_proved_host(&parsed, domain, &[]), by_domain, "{url}");
            assert_eq!(is_proved_host(&parsed, domain, &zones), by_zone, "{url}");
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
