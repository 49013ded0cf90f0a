//! Names of members about credentials that no version defines.

use serde_json::{Map, Value};

use crate::member::folded;

/// Names of members that list required credentials, folded to lower-case letters and digits.
pub(super) const NAMES: [&str; 24] = [
    "auth",
    "authentication",
    "authorization",
    "authentications",
    "authscheme",
    "authschemes",
    "authenticationscheme",
    "authenticationschemes",
    "authtype",
    "authtypes",
    "authenticationtype",
    "authenticationtypes",
    "authmethod",
    "authmethods",
    "authenticationmethod",
    "authenticationmethods",
    "authmode",
    "authprotocol",
    "authmechanism",
    "authmechanisms",
    "security",
    "securityscheme",
    "securityschemes",
    "securityrequirements",
];

/// Whether the name says that credentials are required: `auth_required`, `requiresAuthentication`, …
pub(super) fn is_demand(name: &str) -> bool {
    let name = folded(name);
    let about = name.contains("apikey")
        || name.contains("credential")
        || (name.contains("auth") && !name.contains("authority") && !is_of_authors(&name));
    let demand = ["requir", "need", "mandatory", "enforce"];
    about && demand.iter().any(|word| name.contains(word))
}

/// Whether the name is about an author and not about authorisation.
fn is_of_authors(name: &str) -> bool {
    name.contains("author") && !name.contains("authoriz") && !name.contains("authoris")
}

pub(crate) fn is_about_credentials(name: &str) -> bool {
    NAMES.contains(&folded(name).as_str()) || is_demand(name)
}

pub(crate) fn credential_members(object: &Map<String, Value>) -> Option<Value> {
    let about = object
        .iter()
        .filter(|(name, _)| is_about_credentials(name))
        .map(|(name, value)| (name.clone(), value.clone()));
    let about: Map<String, Value> = about.collect();
    (!about.is_empty()).then_some(Value::Object(about))
}
