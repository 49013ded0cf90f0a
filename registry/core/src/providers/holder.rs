//! The holder of a token: its subject, and the result of the configuration's rules for its claims.

use a2a_registry_domain::role::Roles;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::config::ProviderConfig;
use crate::error::Result;
use crate::providers::refused::Refused;

/// Bytes of a subject, as limited by OpenID Connect.
const MAX_SUBJECT: usize = 255;
/// Characters of a name that an account takes over.
const MAX_NAME: usize = 60;
/// Selected groups that one provider may put a person in.
pub(super) const MAX_GROUPS: usize = 100;
/// Bytes of the name of a group.
pub(super) const MAX_GROUP_NAME: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub issuer: String,
    /// The subject of the token: never reassigned by this issuer.
    pub subject: String,
    /// When the token was issued, in seconds since 1970.
    pub issued_at: i64,
    /// The account that the configuration grants by the claims, or why it does not.
    pub entry: Result<Entry, EntryRefusal>,
}

/// The account of an admitted holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name of a new account: it ends with the provider's name, so that no one can take a name used elsewhere.
    pub account_name: String,
    /// The groups that count, in order; `None` if the claims say nothing about groups.
    pub groups: Option<Vec<String>>,
    /// The roles that the map gives for these groups: at least one.
    pub roles: Roles,
}

/// Why a holder is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRefusal {
    /// The reason, in full sentences for the person concerned.
    pub text: String,
    /// Whether the provider has said so, which ends the access of an account. A claim that is missing from an access
    /// token, or cannot be read, says nothing.
    pub ends_access: bool,
}

/// How complete verified claims are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completeness {
    /// Complete: an identity token with userinfo. A claim that is absent is empty.
    Whole,
    /// An identity token without userinfo, which could not be added.
    WithoutUserinfo,
    /// An access token: nothing is known about claims that it does not carry.
    AccessToken,
}

/// The holder of a token with these verified claims.
pub(super) fn holder(
    name: &str,
    config: &ProviderConfig,
    claims: &Map<String, Value>,
    issued_at: i64,
    completeness: Completeness,
) -> Result<Holder> {
    let subject = subject(claims).map_err(|why| {
        super::refused(
            match completeness {
                Completeness::AccessToken => "access token",
                Completeness::Whole | Completeness::WithoutUserinfo => "sign-in",
            },
            why,
        )
    })?;
    Ok(Holder {
        issuer: config.issuer.clone(),
        entry: entry(name, config, claims, &subject, completeness),
        subject,
        issued_at,
    })
}

fn entry(
    name: &str,
    config: &ProviderConfig,
    claims: &Map<String, Value>,
    subject: &str,
    completeness: Completeness,
) -> Result<Entry, EntryRefusal> {
    check_required(config, claims, completeness)?;
    let groups = match claim(claims, &config.groups_claim) {
        None if is_elsewhere(claims, &config.groups_claim) => {
            return Err(refusal(GROUPS_ELSEWHERE, false));
        }
        None if completeness != Completeness::Whole => None,
        claim => Some(groups(config, claim)?),
    };
    let mut roles: Vec<_> = config.default_roles.clone();
    for group in groups.iter().flatten() {
        roles.extend(config.roles.get(group).into_iter().flatten());
    }
    let roles: Roles = roles.into_iter().collect();
    if roles.is_empty() {
        let text =
            "The identity provider knows you, but none of your groups has a role in this registry.";
        return Err(refusal(text, groups.is_some()));
    }
    let given = claims.get(&config.name_claim).and_then(Value::as_str);
    Ok(Entry {
        account_name: account_name(given.unwrap_or(subject), name),
        groups,
        roles,
    })
}

/// Refuses claims that do not satisfy `require`.
fn check_required(
    config: &ProviderConfig,
    claims: &Map<String, Value>,
    completeness: Completeness,
) -> Result<(), EntryRefusal> {
    let Some(require) = &config.require else {
        let text = "Nobody of this identity provider may enter: the operator of this registry has not said who may \
                    (`require`).";
        return Err(refusal(text, false));
    };
    let claim = claim(claims, &require.claim);
    let values = texts(claim);
    if values.iter().any(|value| require.values.contains(value)) {
        return Ok(());
    }
    let is_absent = claim.is_none();
    if is_absent && is_elsewhere(claims, &require.claim) {
        return Err(refusal(GROUPS_ELSEWHERE, false));
    }
    let text = "The identity provider knows you, but this registry does not let you in: what its operator demands \
                (`require`) is not among your claims.";
    Err(refusal(
        text,
        !is_absent || completeness == Completeness::Whole,
    ))
}

/// A claim, unless it is null: a null says no more than a claim that is left out (OpenID Connect Core 5.3.2).
pub(super) fn claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    claims.get(name).filter(|value| !value.is_null())
}

fn refusal(text: impl Into<String>, ends_access: bool) -> EntryRefusal {
    EntryRefusal {
        text: text.into(),
        ends_access,
    }
}

fn subject(claims: &Map<String, Value>) -> Result<String, Refused> {
    let subject = claims.get("sub").and_then(Value::as_str);
    let fits = |subject: &&str| {
        (1..=MAX_SUBJECT).contains(&subject.len()) && !subject.chars().any(char::is_control)
    };
    let subject = subject.filter(fits).ok_or(Refused::Subject)?;
    Ok(subject.to_owned())
}

/// The texts of a claim that is a text, a number or a boolean, or a list of these.
fn texts(claim: Option<&Value>) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    };
    match claim {
        Some(Value::Array(several)) => several.iter().filter_map(text).collect(),
        Some(one) => text(one).into_iter().collect(),
        None => Vec::new(),
    }
}

const GROUPS_ELSEWHERE: &str = "The identity provider has left your groups out, because they are too many for one token. Its operator must have it \
     send fewer: in Microsoft Entra, choose \"Groups assigned to the application\" for the groups claim (Token \
     configuration), or send application roles and set `groups_claim = \"roles\"` here.";

/// Whether a claim is left out because it must be requested elsewhere (OpenID Connect Core 5.6.2), or, as Microsoft
/// Entra does with groups, because it would be too long: it is unknown then, not empty.
fn is_elsewhere(claims: &Map<String, Value>, name: &str) -> bool {
    let elsewhere = claims.get("_claim_names").and_then(Value::as_object);
    let has_groups = texts(claims.get("hasgroups")) == ["true"];
    elsewhere.is_some_and(|names| names.contains_key(name)) || (name == "groups" && has_groups)
}

/// The groups of a claim that count, in order. A group that cannot be stored makes the whole claim invalid: a policy
/// may forbid something to it.
fn groups(config: &ProviderConfig, claim: Option<&Value>) -> Result<Vec<String>, EntryRefusal> {
    let named = match claim {
        None => 0,
        Some(Value::Array(several)) => several.len(),
        Some(_) => 1,
    };
    let mut groups = texts(claim);
    let is_read = groups.len() == named;
    groups.retain(|name| config.selects_group(name));
    groups.sort_unstable();
    groups.dedup();
    let fits = |name: &String| {
        (1..=MAX_GROUP_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
    };
    if !is_read || groups.len() > MAX_GROUPS || !groups.iter().all(fits) {
        let text = format!(
            "The identity provider names more than {MAX_GROUPS} groups of yours, or one whose name is empty, longer \
             than {MAX_GROUP_NAME} bytes or not plain text. Its operator can have it name only those that matter to \
             this registry, whose operator can select them (`select_groups`)."
        );
        return Err(refusal(text, false));
    }
    Ok(groups)
}

/// The name of an account: the provider's name for the person, as far as it is allowed, and the provider.
fn account_name(given: &str, provider: &str) -> String {
    let plain = given.chars().take(MAX_NAME).map(|c| match c {
        c if c.is_ascii_alphanumeric() || "._-@".contains(c) => c,
        _ => '-',
    });
    let plain: String = plain.collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() {
        return format!("{}@{provider}", short_hash(given));
    }
    format!("{plain}@{provider}")
}

impl Entry {
    /// An alternative account name if the first one is taken: no two subjects have the same.
    pub fn other_account_name(&self, subject: &str) -> String {
        let hash = short_hash(subject);
        match self.account_name.rsplit_once('@') {
            Some((name, provider)) => format!("{name}-{hash}@{provider}"),
            None => format!("{}-{hash}", self.account_name),
        }
    }
}

fn short_hash(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref()
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
