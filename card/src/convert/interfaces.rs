//! The interfaces of a converted card: each dated, and in 0.3 all of one version.

use std::collections::HashSet;

use super::ConversionTarget;
use crate::finding::Findings;
use crate::member::MAX_LIST;
use crate::pointer::Pointer;
use crate::{Family, Interface, rules};

/// Dates every interface, and leaves those that the version can write.
pub(super) fn complete(
    interfaces: &mut Vec<Interface>,
    family: Family,
    target: ConversionTarget,
    out: &mut Findings,
) {
    let root = Pointer::Root;
    let list = root.name(match target {
        ConversionTarget::V1_0 => "supportedInterfaces",
        ConversionTarget::V0_3 => "additionalInterfaces",
    });
    if interfaces.is_empty() {
        out.add(&rules::CONVERT_NO_ADDRESS, &root, "");
        return;
    }
    date(interfaces, family, &list, out);
    if target == ConversionTarget::V0_3 {
        choose(interfaces, &list, out);
    }
    let mut seen = HashSet::new();
    interfaces.retain(|interface| {
        let Interface {
            url,
            binding,
            protocol_version,
            tenant,
        } = interface.clone();
        seen.insert((url, binding, protocol_version, tenant))
    });
    if interfaces.len() > MAX_LIST {
        let found = format!("{} elements", interfaces.len());
        out.add(&rules::LIST_CUT, &list, &found);
        interfaces.truncate(MAX_LIST);
    }
    let spoken = |interface: &Interface| {
        let version = version(interface);
        match target {
            // A client of 1.0 speaks to any 1.x agent (1.0 §3.6).
            ConversionTarget::V1_0 => version.starts_with("1."),
            ConversionTarget::V0_3 => version == "0.3",
        }
    };
    if !interfaces.iter().any(spoken) {
        let found = interfaces.first().map_or("", version);
        out.add(&rules::CONVERT_PROTOCOL, &root, found);
    }
}

/// The protocol version, empty where there is none.
fn version(interface: &Interface) -> &str {
    interface.protocol_version.as_deref().unwrap_or_default()
}

/// Dates interfaces by the form of their card where nothing else does. A caller that names no version is
/// taken for one of 0.3 (1.0 §3.6), so that is what an agent of unknown age is taken for as well.
fn date(interfaces: &mut [Interface], family: Family, list: &Pointer<'_>, out: &mut Findings) {
    let assumed = match family {
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
        interface.protocol_version.get_or_insert_with(|| {
            undated += 1;
            assumed.to_owned()
        });
    }
    if undated > 0 {
        let found = format!(
            "{undated} of {} undated: {assumed} assumed",
            interfaces.len()
        );
        out.add(&rules::CONVERT_VERSION, list, &found);
    }
}

/// Leaves the interfaces of the version nearest to 0.3, without tenants.
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
