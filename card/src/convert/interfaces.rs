//! Interfaces of a converted card: each gets a version, and in 0.3 all have the same.

use std::collections::HashSet;

use super::conversion_target::ConversionTarget;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::MAX_LIST_ELEMENTS;
use crate::wire::normalize_address;
use crate::{CardFamily, Interface, ParsedCard, UNKNOWN_BINDING, rules};

/// Sets the version of every interface, and keeps the interfaces that the target version can express.
pub(super) fn convert_interfaces(
    interfaces: &mut Vec<Interface>,
    parsed: &ParsedCard,
    target: ConversionTarget,
    out: &mut FindingCollector,
) {
    let root = JsonPointer::Root;
    let list_pointer = root.member(match target {
        ConversionTarget::V1_0 => "supportedInterfaces",
        ConversionTarget::V0_3 => "additionalInterfaces",
    });
    // No version can express an address without its binding.
    let first_url = interfaces.first().map(|one| one.url.clone());
    interfaces.retain(|one| one.binding != UNKNOWN_BINDING);
    if interfaces.is_empty() {
        let found = first_url.unwrap_or_default();
        out.add(&rules::CONVERT_NO_ADDRESS, &root, &found);
        return;
    }
    assume_interface_versions(interfaces, parsed, &list_pointer, out);
    if target == ConversionTarget::V0_3 {
        keep_single_version(interfaces, &list_pointer, out);
    }
    raise_versions_to_0_3(interfaces, &list_pointer, out);
    let mut unique_keys = HashSet::new();
    interfaces.retain(|interface| {
        let Interface {
            url,
            binding,
            protocol_version,
            tenant,
        } = interface.clone();
        unique_keys.insert((normalize_address(&url), binding, protocol_version, tenant))
    });
    if interfaces.len() > MAX_LIST_ELEMENTS {
        let found = format!("{} elements", interfaces.len());
        out.add(&rules::LIST_CUT, &list_pointer, &found);
        interfaces.truncate(MAX_LIST_ELEMENTS);
    }
    let has_target_version = |interface: &Interface| {
        let version = version_or_empty(interface);
        match target {
            // A client of 1.0 can call any 1.x agent (1.0 §3.6).
            ConversionTarget::V1_0 => version.starts_with("1."),
            ConversionTarget::V0_3 => version == "0.3",
        }
    };
    if !interfaces.iter().any(has_target_version) {
        let found = interfaces.first().map_or("", version_or_empty);
        out.add(&rules::CONVERT_PROTOCOL, &root, found);
    }
    if !interfaces
        .iter()
        .any(|one| is_callable_by_clients(one, target))
    {
        let found = interfaces.first().map(|one| {
            let version = version_or_empty(one);
            format!("{} {version} at {}", one.binding, one.url)
        });
        out.add(&rules::CONVERT_NO_CLIENT, &root, &found.unwrap_or_default());
    }
}

/// Whether clients of the target version can call the interface. Clients of 1.0 support 0.3 too, both with three
/// bindings.
fn is_callable_by_clients(interface: &Interface, target: ConversionTarget) -> bool {
    let is_before_0_3 = |version: &str| {
        version
            .strip_prefix("0.")
            .is_some_and(|minor| matches!(minor, "0" | "1" | "2"))
    };
    matches!(interface.binding.as_str(), "JSONRPC" | "HTTP+JSON" | "GRPC")
        && match target {
            ConversionTarget::V1_0 => !is_before_0_3(version_or_empty(interface)),
            ConversionTarget::V0_3 => version_or_empty(interface) == "0.3",
        }
}

fn version_or_empty(interface: &Interface) -> &str {
    interface.protocol_version.as_deref().unwrap_or_default()
}

/// Sets the version of interfaces without one, by the form of their card. A caller that names no version counts as 0.3
/// (1.0 §3.6), so an agent of unknown version counts as 0.3 too. So does an agent whose card only looks like an older
/// version: clients ignore anything older than 0.3.
fn assume_interface_versions(
    interfaces: &mut [Interface],
    parsed: &ParsedCard,
    list_pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) {
    let assumed_version = match parsed.family {
        CardFamily::V1_0 | CardFamily::Dual | CardFamily::Snake1 | CardFamily::OtherInterfaces => {
            "1.0"
        }
        CardFamily::V0_1
        | CardFamily::V0_2
        | CardFamily::V0_3
        | CardFamily::Flat1
        | CardFamily::Undated
        | CardFamily::Snake0
        | CardFamily::NoAddress
        | CardFamily::Nested => "0.3",
    };
    let mut undated_count = 0_usize;
    for interface in &mut *interfaces {
        let is_dated_by_form = parsed.version_from_format && version_or_empty(interface) == "0.1";
        if is_dated_by_form || interface.protocol_version.is_none() {
            undated_count += 1;
            interface.protocol_version = Some(assumed_version.to_owned());
        }
    }
    if undated_count > 0 {
        let found = format!(
            "{undated_count} of {} undated: {assumed_version} assumed",
            interfaces.len()
        );
        out.add(&rules::CONVERT_VERSION, list_pointer, &found);
    }
}

/// Writes 0.3 for agents of 0.2: the requests are the same, and clients reject anything older than 0.3.
fn raise_versions_to_0_3(
    interfaces: &mut [Interface],
    list_pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) {
    let mut raised_count = 0_usize;
    for interface in &mut *interfaces {
        if version_or_empty(interface) == "0.2" {
            raised_count += 1;
            interface.protocol_version = Some("0.3".to_owned());
        }
    }
    if raised_count > 0 {
        let found = format!(
            "{raised_count} of {} of 0.2: written as 0.3",
            interfaces.len()
        );
        out.add(&rules::CONVERT_RAISED, list_pointer, &found);
    }
}

/// Keeps the interfaces of the version nearest to 0.3, if they have no tenant.
fn keep_single_version(
    interfaces: &mut Vec<Interface>,
    list_pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) {
    let mut versions = interfaces.iter().map(version_or_empty);
    let exact = versions.clone().find(|version| *version == "0.3");
    let older = versions.clone().find(|version| version.starts_with("0."));
    let chosen_version = exact.or(older).or_else(|| versions.next());
    let chosen_version = chosen_version.unwrap_or_default().to_owned();
    interfaces.retain_mut(|interface| {
        let is_chosen = version_or_empty(interface) == chosen_version;
        let Interface { url, binding, .. } = &*interface;
        if !is_chosen {
            let found = format!("{url} ({binding}, {})", version_or_empty(interface));
            out.add(&rules::CONVERT_INTERFACE, list_pointer, &found);
        } else if let Some(tenant) = &interface.tenant {
            let found = format!("{url} ({binding}): {tenant}");
            out.add(&rules::CONVERT_TENANT, list_pointer, &found);
            interface.tenant = None;
        }
        is_chosen
    });
}
