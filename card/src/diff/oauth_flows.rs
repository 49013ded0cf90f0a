//! Rules for the flows of an OAuth 2 scheme.

use serde_json::Value;

use super::change::ChangeClass::{Critical, High};
use super::change_collector::{ChangeCollector, add_each_difference};
use super::json_equality::BeforeAfter;
use super::object_members::ObjectMembers;
use super::unknown_members;
use crate::json_pointer::JsonPointer;

const FLOW_NAMES: &[&str] = &[
    "authorizationCode",
    "clientCredentials",
    "deviceCode",
    "implicit",
    "password",
];

const FLOW_MEMBERS: &[&str] = &[
    "authorizationUrl",
    "tokenUrl",
    "refreshUrl",
    "deviceAuthorizationUrl",
    "pkceRequired",
    "scopes",
];

const TOKEN_SOURCE_CHANGED: &str = "the way callers get tokens changed";

pub(super) fn compare_oauth_flows(
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    out: &mut ChangeCollector,
) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) = values else {
        add_each_difference(Critical, pointer, values, TOKEN_SOURCE_CHANGED, out);
        return;
    };
    let (mut old, mut new) = (
        ObjectMembers::new(old, FLOW_NAMES),
        ObjectMembers::new(new, FLOW_NAMES),
    );
    for name in FLOW_NAMES {
        if let Some((name, values)) = new.changed_member(&old, name) {
            compare_oauth_flow(&pointer.member(name), values, out);
        }
    }
    // An unknown flow still counts as a flow.
    for flows in [&mut old, &mut new] {
        flows.ambiguous.append(&mut flows.unknown);
    }
    unknown_members::compare_unknown_members(pointer, &old, &new, out);
}

fn compare_oauth_flow(
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    out: &mut ChangeCollector,
) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) = values else {
        out.add(Critical, pointer, values, TOKEN_SOURCE_CHANGED);
        return;
    };
    let (old, new) = (
        ObjectMembers::new(old, FLOW_MEMBERS),
        ObjectMembers::new(new, FLOW_MEMBERS),
    );
    for name in FLOW_MEMBERS {
        let (class, reason) = match *name {
            "scopes" => (High, "the scopes or their descriptions changed"),
            "pkceRequired" => (Critical, TOKEN_SOURCE_CHANGED),
            _ => (
                Critical,
                "callers would send credentials to another address",
            ),
        };
        if let Some((name, values)) = new.changed_member(&old, name) {
            add_each_difference(class, &pointer.member(name), values, reason, out);
        }
    }
    unknown_members::compare_unknown_members(pointer, &old, &new, out);
}
