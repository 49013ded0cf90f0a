//! Rules for an agent's addresses: URLs, bindings, tenants, protocol versions and preference.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::card_addresses::{
    AddressPositionKey, AgentAddress, AgentAddresses, CallTarget, ambiguous_address_key,
};
use super::change::ChangeClass::{self, Critical, High, Low};
use super::change_collector::{ChangeCollector, add_each_difference};
use super::display::unmarked_member_name;
use super::json_equality::is_permutation;
use super::object_members::{MemberBeforeAfter, ObjectMembers, differing_listed_members};
use super::url_origin::UrlOrigin;
use crate::CardFamily;
use crate::json_pointer::JsonPointer;

const ADDRESS_MEMBERS: [&str; 5] = [
    "supportedInterfaces",
    "url",
    "preferredTransport",
    "protocolVersion",
    "additionalInterfaces",
];

/// Reason for a changed order: callers try addresses in their order (1.0 §8.3.2); in other lists it has no meaning.
const PREFERENCE_CHANGED: &str = "callers try another of the approved addresses first";

type VersionsByTarget<'o> = HashMap<&'o CallTarget<'o>, BTreeSet<Option<&'o str>>>;

/// Compares members of no version that contain a card's only address, and removes them from both cards.
pub(super) fn compare_nonstandard_addresses<'a>(
    old: &mut ObjectMembers<'a>,
    new: &mut ObjectMembers<'a>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    let has_address = |card: &ObjectMembers<'_>| {
        let addresses = AgentAddresses::from_card(card).readable;
        addresses.iter().any(|one| !one.target.0.trim().is_empty())
    };
    if has_address(old) && has_address(new) {
        return;
    }
    let is_address_member =
        |name: &str| matches!(&*unmarked_member_name(name), "endpoint" | "endpoints");
    for (name, values) in differing_listed_members(&old.unknown, &new.unknown) {
        if is_address_member(name) {
            let reason = "callers may be led to another address";
            add_each_difference(
                Critical,
                &pointer.member(&unmarked_member_name(name)),
                values,
                reason,
                out,
            );
        }
    }
    old.unknown.retain(|(name, _)| !is_address_member(name));
    new.unknown.retain(|(name, _)| !is_address_member(name));
}

/// Compares the addresses of two cards. `families` are the wire formats of both.
pub(super) fn compare_interfaces(
    families: (CardFamily, CardFamily),
    old: &ObjectMembers<'_>,
    new: &ObjectMembers<'_>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    let changed_members: Vec<MemberBeforeAfter<'_>> = ADDRESS_MEMBERS
        .into_iter()
        .filter_map(|name| new.changed_member(old, name))
        .collect();
    if changed_members.is_empty() {
        return;
    }
    let (before, after) = (
        AgentAddresses::from_card(old),
        AgentAddresses::from_card(new),
    );
    if changed_members.iter().all(is_reordering_only) {
        let (class, reason) = if has_single_target(&after) {
            (Low, "the addresses of one server in a different order")
        } else {
            (High, PREFERENCE_CHANGED)
        };
        for (name, values) in changed_members {
            out.add(class, &pointer.member(name), values, reason);
        }
        return;
    }
    let count_before = out.count();
    if families.0 != families.1 {
        let (before, after) = (
            Value::from(families.0.as_str()),
            Value::from(families.1.as_str()),
        );
        let reason = "the card is written for a different protocol version";
        out.add(
            High,
            &JsonPointer::Root,
            (Some(&before), Some(&after)),
            reason,
        );
    }
    compare_ambiguous_addresses(&before, &after, pointer, out);
    compare_call_targets(&before, &after, pointer, out);
    if out.count() == count_before {
        let reason =
            "the addresses are written in a different form, and clients may choose other addresses";
        for (name, values) in changed_members {
            out.add(High, &pointer.member(name), values, reason);
        }
    }
}

fn is_reordering_only((name, values): &MemberBeforeAfter<'_>) -> bool {
    let is_interface_list = name.ends_with("nterfaces");
    matches!(values, (Some(Value::Array(old)), Some(Value::Array(new))) if is_interface_list && is_permutation(old, new))
}

/// Whether all addresses lead to the same tenant of one server in one version, so that their order does not matter.
fn has_single_target(addresses: &AgentAddresses<'_>) -> bool {
    let target = |address: &AgentAddress<'_>| {
        let (origin, _, tenant) = address.reached_server()?;
        Some((origin, tenant.to_owned(), address.version.clone()))
    };
    let first = addresses.readable.first().and_then(target);
    first.is_some()
        && addresses.ambiguous.is_empty()
        && addresses
            .readable
            .iter()
            .all(|address| target(address) == first)
}

/// Compares addresses that clients may read differently: a new one may lead anywhere.
fn compare_ambiguous_addresses(
    before: &AgentAddresses<'_>,
    after: &AgentAddresses<'_>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    let (old_keys, new_keys) = (
        before.ambiguous_address_keys(),
        after.ambiguous_address_keys(),
    );
    for address in &after.ambiguous {
        if !old_keys.contains(&ambiguous_address_key(address)) {
            let reason = "clients may read this address differently";
            address.0.visit_with_pointer(pointer, |at| {
                out.add(Critical, at, (None, Some(address.1)), reason)
            });
        }
    }
    for address in &before.ambiguous {
        if !new_keys.contains(&ambiguous_address_key(address)) {
            let reason = "an address is no longer offered";
            address.0.visit_with_pointer(pointer, |at| {
                out.add(High, at, (Some(address.1), None), reason)
            });
        }
    }
}

fn compare_call_targets(
    before: &AgentAddresses<'_>,
    after: &AgentAddresses<'_>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    let (old, new) = (versions_by_target(before), versions_by_target(after));
    let approved = ApprovedTargets::new(before);
    // Targets already reported: new ones, and those replaced by a new one.
    let (mut reported, mut replaced) = (HashSet::new(), HashSet::new());
    for address in &after.readable {
        if old.get(&address.target) == new.get(&address.target) || !reported.insert(&address.target)
        {
            continue;
        }
        let predecessor = approved.by_position.get(&address.position.key()).copied();
        let replaced_address = predecessor.filter(|stood| !new.contains_key(&stood.target));
        let (class, reason) = if old.contains_key(&address.target) {
            (
                High,
                "an approved address serves a different protocol version",
            )
        } else {
            replaced.extend(replaced_address.map(|taken| &taken.target));
            approved.classify_address(address)
        };
        let earlier = approved
            .by_target
            .get(&address.target)
            .copied()
            .or(replaced_address);
        let values = (earlier.map(|address| address.value), Some(address.value));
        address
            .position
            .visit_with_pointer(pointer, |at| out.add(class, at, values, reason));
    }
    for address in &before.readable {
        if !new.contains_key(&address.target) && replaced.insert(&address.target) {
            let values = (Some(address.value), None);
            let reason = "an address is no longer offered";
            address
                .position
                .visit_with_pointer(pointer, |at| out.add(High, at, values, reason));
        }
    }
    let (old_first, new_first) = (before.readable.first(), after.readable.first());
    if let (Some(old_first), Some(new_first)) = (old_first, new_first)
        && old_first.target != new_first.target
        && old.contains_key(&new_first.target)
    {
        new_first.position.visit_with_pointer(pointer, |at| {
            out.add(
                High,
                at,
                (Some(old_first.value), Some(new_first.value)),
                PREFERENCE_CHANGED,
            )
        });
    }
}

struct ApprovedTargets<'o> {
    by_position: HashMap<AddressPositionKey<'o>, &'o AgentAddress<'o>>,
    by_target: HashMap<&'o CallTarget<'o>, &'o AgentAddress<'o>>,
    by_address: HashMap<&'o str, &'o AgentAddress<'o>>,
    reached_servers: HashSet<(UrlOrigin, &'o str, &'o str)>,
}

impl<'o> ApprovedTargets<'o> {
    fn new(addresses: &'o AgentAddresses<'o>) -> Self {
        let readable = &addresses.readable;
        ApprovedTargets {
            by_position: readable
                .iter()
                .map(|address| (address.position.key(), address))
                .collect(),
            by_target: readable
                .iter()
                .rev()
                .map(|address| (&address.target, address))
                .collect(),
            by_address: readable
                .iter()
                .map(|address| (address.target.0, address))
                .collect(),
            reached_servers: readable
                .iter()
                .filter_map(AgentAddress::reached_server)
                .collect(),
        }
    }

    fn classify_address(&self, address: &AgentAddress<'_>) -> (ChangeClass, &'static str) {
        if address
            .reached_server()
            .is_some_and(|reach| self.reached_servers.contains(&reach))
        {
            return (High, "another path on an approved server");
        }
        let reason = match self.by_address.get(address.target.0) {
            Some(known) if known.target.2 != address.target.2 => {
                "callers would act for another tenant"
            }
            Some(_) => "another binding at an approved address",
            None => "callers would be sent to another address",
        };
        (Critical, reason)
    }
}

fn versions_by_target<'o>(addresses: &'o AgentAddresses<'o>) -> VersionsByTarget<'o> {
    let mut targets: VersionsByTarget<'o> = HashMap::new();
    for address in &addresses.readable {
        let versions = targets.entry(&address.target).or_default();
        versions.insert(address.version.as_deref());
    }
    targets
}
