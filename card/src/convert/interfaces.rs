//! Completes the interfaces of a converted card: each has a version, and in 0.3 all have the same.

use std::collections::HashSet;

use super::target::ConversionTarget;
use crate::finding::Findings;
use crate::member::MAX_LIST;
use crate::pointer::Pointer;
use crate::wire::normal_address;
use crate::{Family, Interface, Parsed, UNKNOWN_BINDING, rules};

/// Sets the version of every interface, and keeps those that the version can express.
pub(super) fn complete(
    interfaces: &mut Vec<Interface>,
    parsed: &Parsed,
    target: ConversionTarget,
    out: &mut Findings,
) {
    let root = Pointer::Root;
    let list = root.name(match target {
        ConversionTarget::V1_0 => "supportedInterfaces",
        ConversionTarget::V0_3 => "additionalInterfaces",
    });
    // No version can express an address without its binding.
    let first = interfaces.first().map(|one| one.url.clone());
    interfaces.retain(|one| one.binding != UNKNOWN_BINDING);
    if interfaces.is_empty() {
        let found = first.unwrap_or_default();
        out.add(&rules::CONVERT_NO_ADDRESS, &root, &found);
        return;
    }
    date(interfaces, parsed, &list, out);
    if target == ConversionTarget::V0_3 {
        choose(interfaces, &list, out);
    }
    raise(interfaces, &list, out);
    let mut seen = HashSet::new();
    interfaces.retain(|interface| {
        let Interface {
            url,
            binding,
            protocol_version,
            tenant,
        } = interface.clone();
        seen.insert((normal_address(&url), binding, protocol_version, tenant))
    });
    if interfaces.len() > MAX_LIST {
        let found = format!("{} elements", interfaces.len());
        out.add(&rules::LIST_CUT, &list, &found);
        interfaces.truncate(MAX_LIST);
    }
    let spoken = |interface: &Interface| {
        let version = version(interface);
        match target {
            // A client of 1.0 can call any 1.x agent (1.0 §3.6).
            ConversionTarget::V1_0 => version.starts_with("1."),
            ConversionTarget::V0_3 => version == "0.3",
        }
    };
    if !interfaces.iter().any(spoken) {
        let found = interfaces.first().map_or("", version);
        out.add(&rules::CONVERT_PROTOCOL, &root, found);
    }
    if !interfaces.iter().any(|one| has_client(one, target)) {
        let found = interfaces.first().map(|one| {
            let version = version(one);
            format!("{} {version} at {}", one.binding, one.url)
        });
        out.add(&rules::CONVERT_NO_CLIENT, &root, &found.unwrap_or_default());
    }
}

/// Whether clients of the version can call the interface: those of 1.0 support 0.3 too, both with three bindings.
fn has_client(interface: &Interface, target: ConversionTarget) -> bool {
    let old = |version: &str| {
        version
            .strip_prefix("0.")
            .is_some_and(|minor| matches!(minor, "0" | "1" | "2"))
    };
    matches!(interface.binding.as_str(), "JSONRPC" | "HTTP+JSON" | "GRPC")
        && match target {
            ConversionTarget::V1_0 => !old(version(interface)),
            ConversionTarget::V0_3 => version(interface) == "0.3",
        }
}

fn version(interface: &Interface) -> &str {
    interface.protocol_version.as_deref().unwrap_or_default()
}

/// Sets the version of interfaces that have none, by the form of their card. A caller that names no version counts as
/// 0.3 (1.0 §3.6), so an agent of unknown version counts as 0.3 as well, and so does one whose card only looks like
/// an older version: clients ignore anything older than 0.3.
fn date(interfaces: &mut [Interface], parsed: &Parsed, list: &Pointer<'_>, out: &mut Findings) {
    let assumed = match parsed.family {
        Family::V1_0 | Family::Dual | Family::Snake1 | Family::OtherInterfaces => "1.0",
        Family::V0_1
        | Family::V0_2
        | Family::V0_3
        | Family::Flat1
        | Family::Undated
        | Family::Snake0
        | Family::NoAddress
        | Family::Nested => "0.3",
    };
    let mut undated = 0_usize;
    for interface in &mut *interfaces {
        let by_form = parsed.dated_by_form && version(interface) == "0.1";
        if by_form || interface.protocol_version.is_none() {
            undated += 1;
            interface.protocol_version = Some(assumed.to_owned());
        }
    }
    if undated > 0 {
        let found = format!(
            "{undated} of {} undated: {assumed} assumed",
            interfaces.len()
        );
        out.add(&rules::CONVERT_VERSION, list, &found);
    }
}

/// Writes 0.3 for agents of 0.2: the requests are the same, and clients refuse anything older than 0.3.
fn raise(interfaces: &mut [Interface], list: &Pointer<'_>, out: &mut Findings) {
    let mut raised = 0_usize;
    for interface in &mut *interfaces {
        if version(interface) == "0.2" {
            raised += 1;
            interface.protocol_version = Some("0.3".to_owned());
        }
    }
    if raised > 0 {
        let found = format!("{raised} of {} of 0.2: written as 0.3", interfaces.len());
        out.add(&rules::CONVERT_RAISED, list, &found);
    }
}

/// Keeps the interfaces of the version nearest to 0.3, without tenants.
fn choose(interfaces: &mut Vec<Interface>, list: &Pointer<'_>, out: &mut Findings) {
    let mut versions = interfaces.iter().map(version);
    let exact = versions.clone().find(|version| *version == "0.3");
    let older = versions.clone().find(|version| version.starts_with("0."));
    let chosen = exact.or(older).or_else(|| versions.next());
    let chosen = chosen.unwrap_or_default().to_owned();
    interfaces.retain_mut(|interface| {
        let stays = version(interface) == chosen;
        let Interface { url, binding, .. } = &*interface;
        if !stays {
            let found = format!("{url} ({binding}, {})", version(interface));
            out.add(&rules::CONVERT_INTERFACE, list, &found);
        } else if let Some(tenant) = &interface.tenant {
            let found = format!("{url} ({binding}): {tenant}");
            out.add(&rules::CONVERT_TENANT, list, &found);
            interface.tenant = None;
        }
        stays
    });
}
