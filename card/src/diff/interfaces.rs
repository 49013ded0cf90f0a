//! Rules for an agent's addresses: URLs, bindings, tenants, protocol versions and preference.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::address::Origin;
use super::card_addresses::{CardAddress, CardAddresses, PositionKey, Target, unclear_key};
use super::change::ChangeClass::{self, Critical, High, Low};
use super::changes::{Changes, each};
use super::fields::{Fields, Pair, listed_pairs};
use super::shown::shown_name;
use super::tree::permuted;
use crate::Family;
use crate::pointer::Pointer;

const MEMBERS: [&str; 5] = [
    "supportedInterfaces",
    "url",
    "preferredTransport",
    "protocolVersion",
    "additionalInterfaces",
];

/// Reason for a changed order: elsewhere order has no meaning, but callers try addresses in their order (1.0 §8.3.2).
const ANOTHER_FIRST: &str = "callers try another of the approved addresses first";

type Targets<'o> = HashMap<&'o Target<'o>, BTreeSet<Option<&'o str>>>;

/// Compares members of no version that contain a card's only address, and removes them from `rest`.
pub(super) fn compare_undefined_members<'a>(
    old: &mut Fields<'a>,
    new: &mut Fields<'a>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    let has_address = |card: &Fields<'_>| {
        let addresses = CardAddresses::of(card).plain;
        addresses.iter().any(|one| !one.target.0.trim().is_empty())
    };
    if has_address(old) && has_address(new) {
        return;
    }
    let is_address = |name: &str| matches!(&*shown_name(name), "endpoint" | "endpoints");
    for (name, sides) in listed_pairs(&old.rest, &new.rest) {
        if is_address(name) {
            let reason = "callers may be led to another address";
            each(Critical, &at.name(&shown_name(name)), sides, reason, out);
        }
    }
    old.rest.retain(|(name, _)| !is_address(name));
    new.rest.retain(|(name, _)| !is_address(name));
}

/// Compares the addresses of two cards. `families` are the wire formats of both.
pub(super) fn compare(
    families: (Family, Family),
    old: &Fields<'_>,
    new: &Fields<'_>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    let changed: Vec<Pair<'_>> = MEMBERS
        .into_iter()
        .filter_map(|name| new.changed(old, name))
        .collect();
    if changed.is_empty() {
        return;
    }
    let (before, after) = (CardAddresses::of(old), CardAddresses::of(new));
    if changed.iter().all(only_reordered) {
        let (class, reason) = if leads_to_one_place(&after) {
            (Low, "the addresses of one server in another order")
        } else {
            (High, ANOTHER_FIRST)
        };
        for (name, sides) in changed {
            out.add(class, &at.name(name), sides, reason);
        }
        return;
    }
    let found = out.found();
    if families.0 != families.1 {
        let (before, after) = (
            Value::from(families.0.as_str()),
            Value::from(families.1.as_str()),
        );
        let reason = "the card is written for another protocol version";
        out.add(High, &Pointer::Root, (Some(&before), Some(&after)), reason);
    }
    unclear(&before, &after, at, out);
    targets(&before, &after, at, out);
    if out.found() == found {
        let reason = "the addresses are written in another form, and clients may choose other ones";
        for (name, sides) in changed {
            out.add(High, &at.name(name), sides, reason);
        }
    }
}

fn only_reordered((name, sides): &Pair<'_>) -> bool {
    let list = name.ends_with("nterfaces");
    matches!(sides, (Some(Value::Array(old)), Some(Value::Array(new))) if list && permuted(old, new))
}

/// Whether all addresses lead to the same tenant of one server in one version, so that the order does not matter.
fn leads_to_one_place(addresses: &CardAddresses<'_>) -> bool {
    let place = |address: &CardAddress<'_>| {
        let (origin, _, tenant) = address.reach()?;
        Some((origin, tenant.to_owned(), address.version.clone()))
    };
    let first = addresses.plain.first().and_then(place);
    first.is_some()
        && addresses.unclear.is_empty()
        && addresses
            .plain
            .iter()
            .all(|address| place(address) == first)
}

/// Compares addresses that clients may read differently: a new one may lead anywhere.
fn unclear(
    before: &CardAddresses<'_>,
    after: &CardAddresses<'_>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    let (known, kept) = (before.unclear_keys(), after.unclear_keys());
    for address in &after.unclear {
        if !known.contains(&unclear_key(address)) {
            let reason = "clients may read this address differently";
            address.0.below(at, |at| {
                out.add(Critical, at, (None, Some(address.1)), reason)
            });
        }
    }
    for address in &before.unclear {
        if !kept.contains(&unclear_key(address)) {
            let reason = "an address is no longer offered";
            address
                .0
                .below(at, |at| out.add(High, at, (Some(address.1), None), reason));
        }
    }
}

fn targets(
    before: &CardAddresses<'_>,
    after: &CardAddresses<'_>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    let (old, new) = (by_target(before), by_target(after));
    let known = ApprovedTargets::of(before);
    // Targets already reported: new ones, and those that a new one has replaced.
    let (mut seen, mut replaced) = (HashSet::new(), HashSet::new());
    for address in &after.plain {
        if old.get(&address.target) == new.get(&address.target) || !seen.insert(&address.target) {
            continue;
        }
        let stood = known.by_place.get(&address.place.key()).copied();
        let taken = stood.filter(|stood| !new.contains_key(&stood.target));
        let (class, reason) = if old.contains_key(&address.target) {
            (
                High,
                "another protocol version is spoken at an approved address",
            )
        } else {
            replaced.extend(taken.map(|taken| &taken.target));
            known.weigh(address)
        };
        let earlier = known.by_target.get(&address.target).copied().or(taken);
        let sides = (earlier.map(|address| address.value), Some(address.value));
        address
            .place
            .below(at, |at| out.add(class, at, sides, reason));
    }
    for address in &before.plain {
        if !new.contains_key(&address.target) && replaced.insert(&address.target) {
            let sides = (Some(address.value), None);
            let reason = "an address is no longer offered";
            address
                .place
                .below(at, |at| out.add(High, at, sides, reason));
        }
    }
    let (first, now) = (before.plain.first(), after.plain.first());
    if let (Some(first), Some(now)) = (first, now)
        && first.target != now.target
        && old.contains_key(&now.target)
    {
        now.place.below(at, |at| {
            out.add(
                High,
                at,
                (Some(first.value), Some(now.value)),
                ANOTHER_FIRST,
            )
        });
    }
}

struct ApprovedTargets<'o> {
    by_place: HashMap<PositionKey<'o>, &'o CardAddress<'o>>,
    by_target: HashMap<&'o Target<'o>, &'o CardAddress<'o>>,
    by_address: HashMap<&'o str, &'o CardAddress<'o>>,
    reached: HashSet<(Origin, &'o str, &'o str)>,
}

impl<'o> ApprovedTargets<'o> {
    fn of(addresses: &'o CardAddresses<'o>) -> Self {
        let plain = &addresses.plain;
        ApprovedTargets {
            by_place: plain
                .iter()
                .map(|address| (address.place.key(), address))
                .collect(),
            by_target: plain
                .iter()
                .rev()
                .map(|address| (&address.target, address))
                .collect(),
            by_address: plain
                .iter()
                .map(|address| (address.target.0, address))
                .collect(),
            reached: plain.iter().filter_map(CardAddress::reach).collect(),
        }
    }

    fn weigh(&self, address: &CardAddress<'_>) -> (ChangeClass, &'static str) {
        if address
            .reach()
            .is_some_and(|reach| self.reached.contains(&reach))
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

fn by_target<'o>(addresses: &'o CardAddresses<'o>) -> Targets<'o> {
    let mut targets: Targets<'o> = HashMap::new();
    for address in &addresses.plain {
        let versions = targets.entry(&address.target).or_default();
        versions.insert(address.version.as_deref());
    }
    targets
}
