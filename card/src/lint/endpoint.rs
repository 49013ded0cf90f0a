//! Rules about addresses.

use std::collections::HashMap;
use std::net::IpAddr;

use serde_json::Value;
use url::{Host, Url};

use super::Subject;
use crate::finding::Findings;
use crate::member::MAX_LIST;
use crate::pointer::Pointer;
use crate::rules::Rule;
use crate::{Family, Interface};

/// Where an address stands: in a list, or in `url` itself.
type Place = Option<(&'static str, usize)>;

/// Calls `look` with every interface, its address as a URL where it is one, and its place in the card.
pub(super) fn each(
    subject: &Subject<'_>,
    mut look: impl FnMut(&Interface, Option<&Url>, &Pointer<'_>),
) {
    let root = Pointer::Root;
    let places = places(subject.document);
    for interface in &subject.parsed.card.interfaces {
        let url = address(interface);
        match places.get(interface.url.as_str()).copied().flatten() {
            Some((list, index)) => {
                let list = root.name(list);
                look(interface, url.as_ref(), &list.index(index).name("url"));
            }
            None => look(interface, url.as_ref(), &root.name("url")),
        }
    }
}

/// Where each address of the document stands first, as the model keeps them in its own order.
fn places(document: &Value) -> HashMap<&str, Place> {
    const LISTS: [&str; 4] = [
        "supportedInterfaces",
        "supported_interfaces",
        "additionalInterfaces",
        "additional_interfaces",
    ];
    let mut places = HashMap::new();
    for list in LISTS {
        let entries = document.get(list).and_then(Value::as_array);
        for (index, entry) in entries.into_iter().flatten().take(MAX_LIST).enumerate() {
            if let Some(url) = url_of(entry) {
                places.entry(url).or_insert(Some((list, index)));
            }
        }
    }
    if let Some(url) = url_of(document) {
        places.entry(url).or_insert(None);
    }
    places
}

/// The text of an object's `url`.
fn url_of(holder: &Value) -> Option<&str> {
    holder.get("url")?.as_str().map(str::trim)
}

/// The address as a URL. A gRPC address may be a bare `host:port`.
fn address(interface: &Interface) -> Option<Url> {
    let text = interface.url.as_str();
    if interface.binding == "GRPC" && !text.contains("://") {
        return Url::parse(&format!("https://{text}")).ok();
    }
    Url::parse(text).ok().filter(Url::has_host)
}

/// Addresses are absolute.
pub(super) fn absolute(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, |interface, url, at| {
        if url.is_none() {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Addresses can be reached from elsewhere.
pub(super) fn private(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, |interface, url, at| {
        if url.is_some_and(is_private) {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Public addresses are encrypted; private ones are another rule's matter.
pub(super) fn plain_http(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, |interface, url, at| {
        let plain = |url: &Url| matches!(url.scheme(), "http" | "ws") && !is_private(url);
        if url.is_some_and(plain) {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Hosts are not the ones reserved for examples (RFC 2606).
pub(super) fn example(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, |interface, url, at| {
        let reserved = url.and_then(Url::domain).is_some_and(|domain| {
            let domain = domain.trim_end_matches('.');
            let within = |zone: &str| {
                domain == zone
                    || domain
                        .strip_suffix(zone)
                        .is_some_and(|rest| rest.ends_with('.'))
            };
            [
                "example",
                "example.com",
                "example.net",
                "example.org",
                "test",
                "invalid",
            ]
            .into_iter()
            .any(within)
        });
        if reserved {
            out.add(rule, at, &interface.url);
        }
    });
}

/// Up to 0.3 an address speaks one transport.
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

/// One of the core bindings is offered.
pub(super) fn core_binding(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let interfaces = &subject.parsed.card.interfaces;
    let core = |interface: &Interface| {
        matches!(interface.binding.as_str(), "JSONRPC" | "GRPC" | "HTTP+JSON")
    };
    if let Some(first) = interfaces.first()
        && !interfaces.iter().any(core)
    {
        out.add(rule, &Pointer::Root, &first.binding);
    }
}

/// Links lead to web pages.
pub(super) fn links(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let card = &subject.parsed.card;
    let root = Pointer::Root;
    let provider = root.name("provider");
    let provider_url = card.provider.as_ref().and_then(|p| p.url.as_ref());
    let links = [
        (provider.name("url"), provider_url),
        (
            root.name("documentationUrl"),
            card.documentation_url.as_ref(),
        ),
        (root.name("iconUrl"), card.icon_url.as_ref()),
    ];
    for (at, link) in links {
        let Some(link) = link else { continue };
        let web = Url::parse(link).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !web {
            out.add(rule, &at, link);
        }
    }
}

/// Whether only callers nearby can reach the host: loopback, private, link-local, unspecified and shared
/// addresses, single labels and the names that are never in the public DNS.
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

/// The same for an address.
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
