//! The addresses of a card, read literally.

use std::collections::HashSet;

use serde_json::Value;

use super::address::{Origin, origin};
use super::fields::{Fields, Member};
use super::tree::canonical;
use crate::pointer::Pointer;
use crate::wire::names::protocol_version;

const ENTRY: &[&str] = &[
    "url",
    "protocolBinding",
    "transport",
    "type",
    "protocol",
    "protocolVersion",
    "tenant",
];
const BINDINGS: [&str; 4] = ["protocolBinding", "transport", "type", "protocol"];

/// Position of an address in a card: the member, and the index in its list.
#[derive(Debug, Clone, Copy)]
pub(super) struct CardAddressPosition<'a> {
    pub(super) member: &'a str,
    pub(super) index: Option<usize>,
}

pub(super) type PositionKey<'a> = (&'a str, Option<usize>);

impl<'a> CardAddressPosition<'a> {
    pub(super) fn key(&self) -> PositionKey<'a> {
        (self.member, self.index)
    }

    pub(super) fn below<T>(&self, at: &Pointer<'_>, visit: impl FnOnce(&Pointer<'_>) -> T) -> T {
        let member = at.name(self.member);
        match self.index {
            Some(index) => visit(&member.index(index)),
            None => visit(&member),
        }
    }
}

/// Target of a caller: address, binding in lower case, tenant.
pub(super) type Target<'a> = (&'a str, String, &'a str);

#[derive(Debug, Clone)]
pub(super) struct CardAddress<'a> {
    pub(super) target: Target<'a>,
    /// The version as `Major.Minor`, or the text itself if it is not a version.
    pub(super) version: Option<String>,
    pub(super) place: CardAddressPosition<'a>,
    pub(super) value: &'a Value,
}

impl CardAddress<'_> {
    /// Server, binding and tenant; `None` where clients may read the server differently.
    pub(super) fn reach(&self) -> Option<(Origin, &str, &str)> {
        Some((
            origin(self.target.0)?,
            self.target.1.as_str(),
            self.target.2,
        ))
    }
}

/// All addresses of a card, the preferred one first.
#[derive(Debug, Default)]
pub(super) struct CardAddresses<'a> {
    pub(super) plain: Vec<CardAddress<'a>>,
    /// Values in an address's position that can be read in several ways, or not at all.
    pub(super) unclear: Vec<(CardAddressPosition<'a>, &'a Value)>,
}

impl<'a> CardAddresses<'a> {
    pub(super) fn of(card: &Fields<'a>) -> Self {
        let mut addresses = CardAddresses::default();
        if let Some((name, value)) = non_null(card, "supportedInterfaces") {
            addresses.list(name, value, None);
        }
        let version = card.non_null("protocolVersion");
        if let Some((name, value)) = non_null(card, "url") {
            let place = CardAddressPosition {
                member: name,
                index: None,
            };
            let binding = match card.non_null("preferredTransport") {
                None => Some("JSONRPC"),
                Some(value) => value.as_str(),
            };
            match (value.as_str(), binding, declared_version(version)) {
                (Some(url), Some(binding), Ok(version)) => addresses.plain.push(CardAddress {
                    target: (url, binding.to_ascii_lowercase(), ""),
                    version,
                    place,
                    value,
                }),
                _ => addresses.unclear.push((place, value)),
            }
        }
        if let Some((name, value)) = non_null(card, "additionalInterfaces") {
            addresses.list(name, value, version);
        }
        addresses
    }

    /// Reads a list of addresses; `version` applies to those without one of their own.
    fn list(&mut self, member: &'a str, value: &'a Value, version: Option<&'a Value>) {
        let Value::Array(list) = value else {
            let place = CardAddressPosition {
                member,
                index: None,
            };
            self.unclear.push((place, value));
            return;
        };
        for (index, value) in list.iter().enumerate() {
            let place = CardAddressPosition {
                member,
                index: Some(index),
            };
            match entry(value, version, place) {
                Some(address) => self.plain.push(address),
                None => self.unclear.push((place, value)),
            }
        }
    }

    pub(super) fn origins(&self) -> HashSet<Origin> {
        let origins = self
            .plain
            .iter()
            .filter_map(|address| origin(address.target.0));
        origins.collect()
    }

    pub(super) fn unclear_keys(&self) -> HashSet<(bool, String)> {
        self.unclear.iter().map(unclear_key).collect()
    }
}

/// Key of an unclear address: whether it is in `supportedInterfaces`, and its canonical value.
pub(super) fn unclear_key((place, value): &(CardAddressPosition<'_>, &Value)) -> (bool, String) {
    (place.member.starts_with("supported"), canonical(value))
}

fn non_null<'a>(card: &Fields<'a>, name: &str) -> Option<Member<'a>> {
    card.member(name).filter(|(_, value)| !value.is_null())
}

fn entry<'a>(
    value: &'a Value,
    version: Option<&'a Value>,
    place: CardAddressPosition<'a>,
) -> Option<CardAddress<'a>> {
    let fields = Fields::of(value.as_object()?, ENTRY);
    if !fields.doubles.is_empty() {
        return None;
    }
    let mut bindings = BINDINGS.iter().filter_map(|name| fields.non_null(name));
    let binding = match (bindings.next(), bindings.next()) {
        (Some(binding), None) => binding.as_str()?,
        (None, _) => "",
        (Some(_), Some(_)) => return None,
    };
    let tenant = match fields.non_null("tenant") {
        None => "",
        Some(tenant) => tenant.as_str()?,
    };
    let url = fields.non_null("url")?.as_str()?;
    Some(CardAddress {
        target: (url, binding.to_ascii_lowercase(), tenant),
        version: declared_version(fields.non_null("protocolVersion").or(version)).ok()?,
        place,
        value,
    })
}

/// The protocol version that a card declares in this value; an error for a value that is not a text.
fn declared_version(value: Option<&Value>) -> Result<Option<String>, ()> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => {
            Ok(Some(protocol_version(text).unwrap_or_else(|| text.clone())))
        }
        Some(_) => Err(()),
    }
}
