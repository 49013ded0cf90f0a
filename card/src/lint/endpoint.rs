//! Rules about addresses.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use url::{Host, Url};

use super::subject::{Subject, member};
use crate::addresses::completed;
use crate::finding::Findings;
use crate::member::MAX_LIST;
use crate::pointer::Pointer;
use crate::rule::Rule;
use crate::wire::normal_address;
use crate::{Family, Interface, UNKNOWN_BINDING};

pub(super) fn absolute(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    subject.each_interface(|interface, url, at| {
        if url.is_none() {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Addresses are complete in themselves, even where the card's own URL completes them.
pub(super) fn relative(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let Some(card_url) = subject.context.card_url else {
        return;
    };
    subject.each_interface(|interface, _, at| {
        if completed(interface, card_url).is_some() {
            out.add(rule, at, &interface.url);
        }
    });
}

pub(super) fn private(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    subject.each_interface(|interface, url, at| {
        if url.is_some_and(is_private) {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Public addresses are encrypted; private ones are another rule's subject.
pub(super) fn plain_http(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    subject.each_interface(|interface, url, at| {
        let plain = |url: &Url| matches!(url.scheme(), "http" | "ws") && !is_private(url);
        if url.is_some_and(plain) {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Hosts are not the ones reserved for examples (RFC 2606).
pub(super) fn example(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    subject.each_interface(|interface, url, at| {
        if url.is_some_and(is_example) {
            out.add(rule, at, &interface.url);
        }
    });
}

fn is_example(url: &Url) -> bool {
    const RESERVED: [&str; 6] = [
        "example",
        "example.com",
        "example.net",
        "example.org",
        "test",
        "invalid",
    ];
    url.domain().is_some_and(|domain| {
        let domain = domain.trim_end_matches('.');
        RESERVED.into_iter().any(|zone| {
            let rest = domain.strip_suffix(zone);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    })
}

pub(super) fn scheme(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    subject.each_interface(|interface, url, at| {
        let over_http = matches!(interface.binding.as_str(), "JSONRPC" | "HTTP+JSON");
        let wrong = |url: &Url| !matches!(url.scheme(), "http" | "https");
        if over_http && url.is_some_and(wrong) {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Agents answer on the site that publishes their card. Private and example addresses are left to their own rules.
pub(super) fn other_domain(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let Some(home) = subject.context.card_url.and_then(Url::host_str) else {
        return;
    };
    subject.each_interface(|interface, url, at| {
        let Some(url) = url else { return };
        let elsewhere = url.host_str().is_some_and(|host| !is_same_site(home, host));
        if elsewhere && !is_private(url) && !is_example(url) {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Whether two hosts are one or have the registrable domain in common.
fn is_same_site(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim_end_matches('.'), other.trim_end_matches('.'));
    one == other
        || match (psl::domain_str(one), psl::domain_str(other)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        }
}

pub(super) fn repeated(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let list = subject.find("supportedInterfaces");
    let Some((spot, entries)) = list else { return };
    let root = Pointer::Root;
    let at = spot.below(&root);
    let mut seen = HashSet::new();
    let entries = entries.as_array().into_iter().flatten().take(MAX_LIST);
    for (index, entry) in entries.enumerate() {
        let text = |name| member(entry, name).and_then(|value| value.as_str());
        let Some(url) = text("url") else { continue };
        let rest = ["protocolBinding", "protocolVersion", "tenant"].map(text);
        if !seen.insert((normal_address(url.trim()), rest)) {
            out.add(rule, &at.index(index), url);
        }
    }
}

pub(super) fn conflict(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    if !matches!(subject.parsed.family, Family::V0_2 | Family::V0_3) {
        return;
    }
    let mut bindings: HashMap<&str, &str> = HashMap::new();
    for interface in &subject.parsed.card.interfaces {
        let (url, binding) = (interface.url.as_str(), interface.binding.as_str());
        let first = *bindings.entry(url).or_insert(binding);
        if first != binding {
            let found = format!("{url}: {first} and {binding}");
            out.add(rule, &Pointer::Root.name("additionalInterfaces"), &found);
        }
    }
}

pub(super) fn not_agent(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    subject.each_interface(|interface, url, at| {
        let is_agents = matches!(
            interface.binding.as_str(),
            "JSONRPC" | "HTTP+JSON" | UNKNOWN_BINDING
        );
        if is_agents && let Some(other) = url.and_then(other_target) {
            out.add(rule, at, &format!("{}: {other}", interface.url));
        }
    });
}

/// What an address leads to by its path, if that is not an agent.
fn other_target(url: &Url) -> Option<&'static str> {
    const OPERATIONS: [&str; 10] = [
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
    const CARDS: [&str; 3] = ["/agent-card.json", "/agent.json", "/.well-known/agent-card"];
    let path = url.path().trim_end_matches('/').to_ascii_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if ends(&CARDS) {
        Some("a card")
    } else if ends(&OPERATIONS) {
        Some("one of its operations")
    } else if ends(&["/mcp", "/mcp.json"]) {
        Some("an MCP server")
    } else {
        None
    }
}

pub(super) fn core_binding(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let interfaces = &subject.parsed.card.interfaces;
    let core = |interface: &Interface| {
        matches!(interface.binding.as_str(), "JSONRPC" | "GRPC" | "HTTP+JSON")
    };
    if let Some(first) = interfaces.first()
        && !interfaces.iter().any(core)
        && first.binding != UNKNOWN_BINDING
    {
        out.add(rule, &Pointer::Root, &first.binding);
    }
}

pub(super) fn links(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let card = &subject.parsed.card;
    let root = Pointer::Root;
    let [provider, documentation, icon] =
        ["provider", "documentationUrl", "iconUrl"].map(|name| subject.spot(name));
    let provider = provider.below(&root);
    let provider_url = card.provider.as_ref().and_then(|p| p.url.as_ref());
    let links = [
        (provider.name("url"), provider_url),
        (documentation.below(&root), card.documentation_url.as_ref()),
        (icon.below(&root), card.icon_url.as_ref()),
    ];
    for (at, link) in links {
        let Some(link) = link else { continue };
        let web = Url::parse(link).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        // A converted card has the empty page for one that the original does not name.
        let empty = subject.is_converted() && link == "about:blank";
        if !web && !empty {
            out.add(rule, &at, link);
        }
    }
}

/// Whether the host is reachable only locally: loopback, private, link-local, unspecified and shared addresses,
/// single labels and names that are never in the public DNS.
fn is_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_private_address(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_private_address(address.to_canonical()),
        Some(Host::Domain(domain)) => {
            let domain = domain.trim_end_matches('.');
            let last = domain.rsplit('.').next().unwrap_or_default();
            !domain.contains('.')
                || matches!(last, "localhost" | "local" | "internal" | "lan")
                || domain.ends_with(".home.arpa")
        }
        None => false,
    }
}

fn is_private_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let shared = first == 100 && (64..128).contains(&second);
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || first == 0 || shared
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
        }
    }
}
