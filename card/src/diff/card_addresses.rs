//! Addresses of a card, read literally.

use std::collections::HashSet;

use serde_json::Value;

use super::json_equality::canonical_text;
use super::object_members::{MemberRef, ObjectMembers};
use super::url_origin::{UrlOrigin, url_origin};
use crate::json_pointer::JsonPointer;
use crate::wire::value_spellings::parse_protocol_version;

const INTERFACE_MEMBERS: &[&str] = &[
    "url",
    "protocolBinding",
    "transport",
    "type",
    "protocol",
    "protocolVersion",
    "tenant",
];
const BINDING_MEMBERS: [&str; 4] = ["protocolBinding", "transport", "type", "protocol"];

/// Position of an address in a card: the member, and the index in its list.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentAddressPosition<'a> {
    pub(super) member: &'a str,
    pub(super) index: Option<usize>,
}

pub(super) type AddressPositionKey<'a> = (&'a str, Option<usize>);

impl<'a> AgentAddressPosition<'a> {
    pub(super) fn key(&self) -> AddressPositionKey<'a> {
        (self.member, self.index)
    }

    pub(super) fn visit_with_pointer<T>(
        &self,
        pointer: &JsonPointer<'_>,
        visit: impl FnOnce(&JsonPointer<'_>) -> T,
    ) -> T {
        let member = pointer.member(self.member);
        match self.index {
            Some(index) => visit(&member.element(index)),
            None => visit(&member),
        }
    }
}

/// Target of a call: address, binding in lower case, tenant.
pub(super) type CallTarget<'a> = (&'a str, String, &'a str);

#[derive(Debug, Clone)]
pub(super) struct AgentAddress<'a> {
    pub(super) target: CallTarget<'a>,
    /// The version as `Major.Minor`, or the text itself if it is not a version.
    pub(super) version: Option<String>,
    pub(super) position: AgentAddressPosition<'a>,
    pub(super) value: &'a Value,
}

impl AgentAddress<'_> {
    /// The server, binding and tenant; `None` if clients may read the server differently.
    pub(super) fn reached_server(&self) -> Option<(UrlOrigin, &str, &str)> {
        Some((
            url_origin(self.target.0)?,
            self.target.1.as_str(),
            self.target.2,
        ))
    }
}

/// All addresses of a card, the preferred one first.
#[derive(Debug, Default)]
pub(super) struct AgentAddresses<'a> {
    pub(super) readable: Vec<AgentAddress<'a>>,
    /// Values in the position of an address that can be read in several ways, or not at all.
    pub(super) ambiguous: Vec<(AgentAddressPosition<'a>, &'a Value)>,
}

impl<'a> AgentAddresses<'a> {
    pub(super) fn from_card(card: &ObjectMembers<'a>) -> Self {
        let mut addresses = AgentAddresses::default();
        if let Some((name, value)) = non_null_member(card, "supportedInterfaces") {
            addresses.add_list(name, value, None);
        }
        let version = card.get_non_null("protocolVersion");
        if let Some((name, value)) = non_null_member(card, "url") {
            let position = AgentAddressPosition {
                member: name,
                index: None,
            };
            let binding = match card.get_non_null("preferredTransport") {
                None => Some("JSONRPC"),
                Some(value) => value.as_str(),
            };
            match (value.as_str(), binding, parse_declared_version(version)) {
                (Some(url), Some(binding), Ok(version)) => addresses.readable.push(AgentAddress {
                    target: (url, binding.to_ascii_lowercase(), ""),
                    version,
                    position,
                    value,
                }),
                _ => addresses.ambiguous.push((position, value)),
            }
        }
        if let Some((name, value)) = non_null_member(card, "additionalInterfaces") {
            addresses.add_list(name, value, version);
        }
        addresses
    }

    /// Adds a list of addresses; `version` applies to addresses without a version of their own.
    fn add_list(&mut self, member: &'a str, value: &'a Value, version: Option<&'a Value>) {
        let Value::Array(list) = value else {
            let position = AgentAddressPosition {
                member,
                index: None,
            };
            self.ambiguous.push((position, value));
            return;
        };
        for (index, value) in list.iter().enumerate() {
            let position = AgentAddressPosition {
                member,
                index: Some(index),
            };
            match parse_address_entry(value, version, position) {
                Some(address) => self.readable.push(address),
                None => self.ambiguous.push((position, value)),
            }
        }
    }

    pub(super) fn origins(&self) -> HashSet<UrlOrigin> {
        let origins = self
            .readable
            .iter()
            .filter_map(|address| url_origin(address.target.0));
        origins.collect()
    }

    pub(super) fn ambiguous_address_keys(&self) -> HashSet<(bool, String)> {
        self.ambiguous.iter().map(ambiguous_address_key).collect()
    }
}

/// Key of an ambiguous address: whether it is in `supportedInterfaces`, and its canonical value.
pub(super) fn ambiguous_address_key(
    (position, value): &(AgentAddressPosition<'_>, &Value),
) -> (bool, String) {
    (
        position.member.starts_with("supported"),
        canonical_text(value),
    )
}

fn non_null_member<'a>(card: &ObjectMembers<'a>, name: &str) -> Option<MemberRef<'a>> {
    card.find_member(name).filter(|(_, value)| !value.is_null())
}

fn parse_address_entry<'a>(
    value: &'a Value,
    version: Option<&'a Value>,
    position: AgentAddressPosition<'a>,
) -> Option<AgentAddress<'a>> {
    let members = ObjectMembers::new(value.as_object()?, INTERFACE_MEMBERS);
    if !members.ambiguous.is_empty() {
        return None;
    }
    let mut declared_bindings = BINDING_MEMBERS
        .iter()
        .filter_map(|name| members.get_non_null(name));
    let binding = match (declared_bindings.next(), declared_bindings.next()) {
        (Some(binding), None) => binding.as_str()?,
        (None, _) => "",
        (Some(_), Some(_)) => return None,
    };
    let tenant = match members.get_non_null("tenant") {
        None => "",
        Some(tenant) => tenant.as_str()?,
    };
    let url = members.get_non_null("url")?.as_str()?;
    Some(AgentAddress {
        target: (url, binding.to_ascii_lowercase(), tenant),
        version: parse_declared_version(members.get_non_null("protocolVersion").or(version))
            .ok()?,
        position,
        value,
    })
}

/// Parses the declared protocol version; an error if the value is not a text.
fn parse_declared_version(value: Option<&Value>) -> Result<Option<String>, ()> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(
            parse_protocol_version(text).unwrap_or_else(|| text.clone()),
        )),
        Some(_) => Err(()),
    }
}
