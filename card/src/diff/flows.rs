//! Rules for the flows of an OAuth 2 scheme.

use serde_json::Value;

use super::change::ChangeClass::{Critical, High};
use super::changes::{Changes, each};
use super::fields::Fields;
use super::leftovers;
use super::tree::Sides;
use crate::pointer::Pointer;

const FLOWS: &[&str] = &[
    "authorizationCode",
    "clientCredentials",
    "deviceCode",
    "implicit",
    "password",
];

const FLOW: &[&str] = &[
    "authorizationUrl",
    "tokenUrl",
    "refreshUrl",
    "deviceAuthorizationUrl",
    "pkceRequired",
    "scopes",
];

const OTHERWISE: &str = "callers get tokens in another way";

pub(super) fn compare(at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) = sides else {
        each(Critical, at, sides, OTHERWISE, out);
        return;
    };
    let (mut old, mut new) = (Fields::of(old, FLOWS), Fields::of(new, FLOWS));
    for name in FLOWS {
        if let Some((name, sides)) = new.changed(&old, name) {
            flow(&at.name(name), sides, out);
        }
    }
    // An unknown flow counts as a flow all the same.
    for flows in [&mut old, &mut new] {
        flows.doubles.append(&mut flows.rest);
    }
    leftovers::compare(at, &old, &new, out);
}

fn flow(at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) = sides else {
        out.add(Critical, at, sides, OTHERWISE);
        return;
    };
    let (old, new) = (Fields::of(old, FLOW), Fields::of(new, FLOW));
    for name in FLOW {
        let (class, reason) = match *name {
            "scopes" => (High, "the scopes or their descriptions changed"),
            "pkceRequired" => (Critical, OTHERWISE),
            _ => (
                Critical,
                "callers would send credentials to another address",
            ),
        };
        if let Some((name, sides)) = new.changed(&old, name) {
            each(class, &at.name(name), sides, reason, out);
        }
    }
    leftovers::compare(at, &old, &new, out);
}
