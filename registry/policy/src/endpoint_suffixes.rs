//! The domains that endpoints lie under, so that a policy can name a parent domain instead of each host.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// Maximum number of labels of a suffix, besides the host itself. Hosts are written by others, and all suffixes of a
/// host together grow with the square of its labels.
const MAX_LABELS: usize = 10;

/// The domains that endpoints lie under, each host itself included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointSuffixes {
    /// Those of every endpoint; empty without endpoints.
    pub of_all: Vec<String>,
    /// Those of any endpoint.
    pub of_any: Vec<String>,
}

impl EndpointSuffixes {
    /// Reads the hosts of all endpoints, as [`endpoint_hosts`](crate::AgentAttributes::endpoint_hosts) has them.
    pub fn from_hosts(hosts: &[String]) -> Self {
        let mut of_all: Option<BTreeSet<String>> = None;
        let mut of_any = BTreeSet::new();
        for host in hosts {
            let suffixes = host_suffixes(host);
            of_all = Some(match of_all {
                None => suffixes.clone(),
                Some(common) => common.intersection(&suffixes).cloned().collect(),
            });
            of_any.extend(suffixes);
        }
        Self {
            of_all: of_all.into_iter().flatten().collect(),
            of_any: of_any.into_iter().collect(),
        }
    }
}

/// The host and the domains that it lies under. An address without a readable host lies under nothing but itself.
fn host_suffixes(text: &str) -> BTreeSet<String> {
    let Some(host) = host_name(text) else {
        return BTreeSet::from([text.to_lowercase()]);
    };
    let labels: Vec<&str> = host.split('.').collect();
    let shortest =
        (1..=labels.len().min(MAX_LABELS)).map(|count| labels[labels.len() - count..].join("."));
    let mut suffixes: BTreeSet<String> = shortest.collect();
    suffixes.insert(host);
    suffixes
}

/// The name in a host, or in an address without a scheme such as gRPC's `host:port`, in lower case. `None` for an IP
/// address and for what is not surely a name.
fn host_name(text: &str) -> Option<String> {
    if text.contains("://") {
        return None;
    }
    let authority = text.split('/').next()?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_name = host.split('.').all(|label| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        !label.is_empty() && label.bytes().all(is_allowed)
    });
    (is_name && host.parse::<IpAddr>().is_err()).then(|| host.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suffixes(hosts: &[&str]) -> (Vec<String>, Vec<String>) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let EndpointSuffixes { of_all, of_any } = EndpointSuffixes::from_hosts(&hosts);
        (of_all, of_any)
    }

    #[test]
    fn every_endpoint_lies_under_what_all_share_and_one_under_what_any_has() {
        assert_eq!(suffixes(&[]), (vec![], vec![]));
        let (of_all, of_any) = suffixes(&["a.corp.example", "B.corp.example.", "corp.example"]);
        assert_eq!(of_all, ["corp.example", "example"]);
        assert_eq!(
            of_any,
            [
                "a.corp.example",
                "b.corp.example",
                "corp.example",
                "example"
            ]
        );
        let (of_all, _) = suffixes(&["a.corp.example", "corp.example.evil.test"]);
        assert!(of_all.is_empty());
    }

    #[test]
    fn what_is_no_name_lies_under_itself_alone() {
        for address in [
            "192.0.2.1",
            "[2001:db8::1]",
            "dns:///agents.corp.example",
            "corp.example@evil.test",
            "evil.test\\.corp.example",
            "a..corp.example",
            "",
        ] {
            assert_eq!(suffixes(&[address]).0, [address], "{address}");
        }
        assert_eq!(
            suffixes(&["a.corp.example:443"]).0,
            ["a.corp.example", "corp.example", "example"]
        );
        assert_eq!(
            suffixes(&["a.corp.example/a2a"]).0,
            ["a.corp.example", "corp.example", "example"]
        );
    }

    #[test]
    fn a_host_has_as_many_suffixes_as_are_kept() {
        let host = vec!["x"; MAX_LABELS + 5].join(".");
        let (of_all, _) = suffixes(&[&host]);
        assert_eq!(of_all.len(), MAX_LABELS + 1);
        assert!(of_all.contains(&host));
    }
}
