//! Names of members about credentials that no version defines.

use serde_json::{Map, Value};

use crate::member_reader::fold_name;

/// Names of members that list required credentials, folded to lower-case letters and digits.
pub(super) const CREDENTIAL_NAMES: [&str; 24] = [
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

/// Whether the name indicates that credentials are required: `auth_required`, `requiresAuthentication`, …
pub(super) fn says_credentials_required(name: &str) -> bool {
    let name = fold_name(name);
    let is_about_credentials = name.contains("apikey")
        || name.contains("credential")
        || (name.contains("auth") && !name.contains("authority") && !is_about_authors(&name));
    let requirement_words = ["requir", "need", "mandatory", "enforce"];
    is_about_credentials && requirement_words.iter().any(|word| name.contains(word))
}

/// Whether the name is about an author and not about authorisation.
fn is_about_authors(name: &str) -> bool {
    name.contains("author") && !name.contains("authoriz") && !name.contains("authoris")
}

pub(crate) fn is_about_credentials(name: &str) -> bool {
    CREDENTIAL_NAMES.contains(&fold_name(name).as_str()) || says_credentials_required(name)
}

pub(crate) fn collect_credential_members(object: &Map<String, Value>) -> Option<Value> {
    let about = object
        .iter()
        .filter(|(name, _)| is_about_credentials(name))
        .map(|(name, value)| (name.clone(), value.clone()));
    let credential_members: Map<String, Value> = about.collect();
    (!credential_members.is_empty()).then_some(Value::Object(credential_members))
}
