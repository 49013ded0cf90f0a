//! Rules about addresses.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use url::{Host, Url};

use super::target::{LintTarget, member_in_either_spelling};
use crate::absolute_addresses::complete_partial_address;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::MAX_LIST_ELEMENTS;
use crate::rule::Rule;
use crate::wire::normalize_address;
use crate::{CardFamily, Interface, UNKNOWN_BINDING};

pub(super) fn check_absolute_url(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    target.for_each_interface(|interface, url, pointer| {
        if url.is_none() {
            out.add(rule, pointer, &interface.url);
        }
    });
}

/// Checks that addresses are complete in themselves, even if the card's own URL would complete them.
pub(super) fn check_relative_url(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    let Some(card_url) = target.context.card_url else {
        return;
    };
    target.for_each_interface(|interface, _, pointer| {
        if complete_partial_address(interface, card_url).is_some() {
            out.add(rule, pointer, &interface.url);
        }
    });
}

pub(super) fn check_private_host(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    target.for_each_interface(|interface, url, pointer| {
        if url.is_some_and(is_private_host) {
            out.add(rule, pointer, &interface.url);
        }
    });
}

/// Checks that public addresses are encrypted; private ones have another rule.
pub(super) fn check_plain_http(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    target.for_each_interface(|interface, url, pointer| {
        let is_unencrypted =
            |url: &Url| matches!(url.scheme(), "http" | "ws") && !is_private_host(url);
        if url.is_some_and(is_unencrypted) {
            out.add(rule, pointer, &interface.url);
        }
    });
}

/// Checks that hosts are not reserved for examples (RFC 2606).
pub(super) fn check_example_host(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    target.for_each_interface(|interface, url, pointer| {
        if url.is_some_and(is_example_host) {
            out.add(rule, pointer, &interface.url);
        }
    });
}

fn is_example_host(url: &Url) -> bool {
    const RESERVED_DOMAINS: [&str; 6] = [
        "example",
        "example.com",
        "example.net",
        "example.org",
        "test",
        "invalid",
    ];
    url.domain().is_some_and(|domain| {
        let domain = domain.trim_end_matches('.');
        RESERVED_DOMAINS.into_iter().any(|zone| {
            let rest = domain.strip_suffix(zone);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    })
}

pub(super) fn check_url_scheme(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    target.for_each_interface(|interface, url, pointer| {
        let over_http = matches!(interface.binding.as_str(), "JSONRPC" | "HTTP+JSON");
        let is_not_http = |url: &Url| !matches!(url.scheme(), "http" | "https");
        if over_http && url.is_some_and(is_not_http) {
            out.add(rule, pointer, &interface.url);
        }
    });
}

/// Checks that agents are on the site that publishes their card. Private and example addresses have their own rules.
pub(super) fn check_same_site(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    let Some(card_host) = target.context.card_url.and_then(Url::host_str) else {
        return;
    };
    target.for_each_interface(|interface, url, pointer| {
        let Some(url) = url else { return };
        let is_other_site = url
            .host_str()
            .is_some_and(|host| !is_same_site(card_host, host));
        if is_other_site && !is_private_host(url) && !is_example_host(url) {
            out.add(rule, pointer, &interface.url);
        }
    });
}

/// Whether two hosts are equal or have the same registrable domain.
fn is_same_site(first: &str, second: &str) -> bool {
    let (first, second) = (first.trim_end_matches('.'), second.trim_end_matches('.'));
    first == second
        || match (psl::domain_str(first), psl::domain_str(second)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        }
}

pub(super) fn check_repeated_interface(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let list = target.find_member("supportedInterfaces");
    let Some((position, entries)) = list else {
        return;
    };
    let root = JsonPointer::Root;
    let pointer = position.pointer_in(&root);
    let mut unique_entries = HashSet::new();
    let entries = entries
        .as_array()
        .into_iter()
        .flatten()
        .take(MAX_LIST_ELEMENTS);
    for (index, entry) in entries.enumerate() {
        let text = |name| member_in_either_spelling(entry, name).and_then(|value| value.as_str());
        let Some(url) = text("url") else { continue };
        let other_members = ["protocolBinding", "protocolVersion", "tenant"].map(text);
        if !unique_entries.insert((normalize_address(url.trim()), other_members)) {
            out.add(rule, &pointer.element(index), url);
        }
    }
}

pub(super) fn check_transport_conflict(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    if !matches!(target.parsed.family, CardFamily::V0_2 | CardFamily::V0_3) {
        return;
    }
    let mut bindings: HashMap<&str, &str> = HashMap::new();
    for interface in &target.parsed.card.interfaces {
        let (url, binding) = (interface.url.as_str(), interface.binding.as_str());
        let first_binding = *bindings.entry(url).or_insert(binding);
        if first_binding != binding {
            let found = format!("{url}: {first_binding} and {binding}");
            out.add(
                rule,
                &JsonPointer::Root.member("additionalInterfaces"),
                &found,
            );
        }
    }
}

pub(super) fn check_non_agent_url(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    target.for_each_interface(|interface, url, pointer| {
        let is_agent_binding = matches!(
            interface.binding.as_str(),
            "JSONRPC" | "HTTP+JSON" | UNKNOWN_BINDING
        );
        if is_agent_binding && let Some(other) = url.and_then(non_agent_target) {
            out.add(rule, pointer, &format!("{}: {other}", interface.url));
        }
    });
}

/// What an address leads to, according to its path, if not to an agent.
fn non_agent_target(url: &Url) -> Option<&'static str> {
    const OPERATION_PATHS: [&str; 10] = [
        "/message:send",
        "/message:stream",
        "/messages:stream",
        "/message/send",
        "/message/stream",
        "/tasks/send",
        "/tasks/sendsubscribe",
        "/tasks/get",
        "/tasks/cancel",
        "/tasks/resubscribe",
    ];
    const CARD_PATHS: [&str; 3] = ["/agent-card.json", "/agent.json", "/.well-known/agent-card"];
    let path = url.path().trim_end_matches('/').to_ascii_lowercase();
    let has_any_ending = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if has_any_ending(&CARD_PATHS) {
        Some("a card")
    } else if has_any_ending(&OPERATION_PATHS) {
        Some("one of its operations")
    } else if has_any_ending(&["/mcp", "/mcp.json"]) {
        Some("an MCP server")
    } else {
        None
    }
}

pub(super) fn check_core_binding(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    let interfaces = &target.parsed.card.interfaces;
    let is_core = |interface: &Interface| {
        matches!(interface.binding.as_str(), "JSONRPC" | "GRPC" | "HTTP+JSON")
    };
    if let Some(first) = interfaces.first()
        && !interfaces.iter().any(is_core)
        && first.binding != UNKNOWN_BINDING
    {
        out.add(rule, &JsonPointer::Root, &first.binding);
    }
}

pub(super) fn check_link_schemes(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    let card = &target.parsed.card;
    let root = JsonPointer::Root;
    let [provider, documentation, icon] =
        ["provider", "documentationUrl", "iconUrl"].map(|name| target.position_of(name));
    let provider = provider.pointer_in(&root);
    let provider_url = card.provider.as_ref().and_then(|p| p.url.as_ref());
    let links = [
        (provider.member("url"), provider_url),
        (
            documentation.pointer_in(&root),
            card.documentation_url.as_ref(),
        ),
        (icon.pointer_in(&root), card.icon_url.as_ref()),
    ];
    for (pointer, link) in links {
        let Some(link) = link else { continue };
        let is_web = Url::parse(link).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        // A converted card has the blank page in place of one that the original does not name.
        let is_blank_page = target.is_converted() && link == "about:blank";
        if !is_web && !is_blank_page {
            out.add(rule, &pointer, link);
        }
    }
}

/// Whether the host is reachable only locally: loopback, private, link-local, unspecified and shared addresses, single
/// labels, and names that are never in the public DNS.
fn is_private_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_private_address(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_private_address(address.to_canonical()),
        Some(Host::Domain(domain)) => {
            let domain = domain.trim_end_matches('.');
            let last_label = domain.rsplit('.').next().unwrap_or_default();
            !domain.contains('.')
                || matches!(last_label, "localhost" | "local" | "internal" | "lan")
                || domain.ends_with(".home.arpa")
        }
        None => false,
    }
}

fn is_private_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || first == 0 || is_shared
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
        }
    }
}
