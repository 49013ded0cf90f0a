//! The holder of a token: the token's subject, and the account, if any, that the configuration grants for its claims.

use a2a_registry_domain::role::Roles;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::config::IdentityProviderConfig;
use crate::error::Result;
use crate::providers::token_rejection::TokenRejection;

/// Maximum size of a subject in bytes, as limited by OpenID Connect.
const MAX_SUBJECT_BYTES: usize = 255;
/// Maximum number of characters that an account name takes from the name that the provider gives for the person.
const MAX_ACCOUNT_NAME_CHARS: usize = 60;
/// Maximum number of selected groups in which a provider may put a person.
pub(super) const MAX_GROUPS: usize = 100;
/// Maximum size of a group's name in bytes.
pub(super) const MAX_GROUP_NAME_BYTES: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSubject {
    pub issuer: String,
    /// The subject of the token, which this issuer never reassigns.
    pub subject: String,
    /// When the token was issued, in seconds since 1970.
    pub issued_at: i64,
    /// The account that the configuration grants for the claims, or why it grants none.
    pub grant: Result<AccountGrant, GrantRejection>,
}

/// The account of an admitted holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountGrant {
    /// The name of a new account: it ends with the provider's name, so that no one can take a name used elsewhere.
    pub account_name: String,
    /// The selected groups, in order; `None` if the claims say nothing about groups.
    pub groups: Option<Vec<String>>,
    /// The roles that the role mapping gives for these groups: at least one.
    pub roles: Roles,
}

/// Why a holder is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRejection {
    /// The reason, in full sentences for the person concerned.
    pub text: String,
    /// Whether the provider's claims show that the holder is not admitted. If they do, an existing account loses its
    /// access. A claim that is missing from an access token or cannot be read shows nothing.
    pub ends_access: bool,
}

/// The completeness of verified claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimCompleteness {
    /// An ID token with userinfo: an absent claim counts as empty.
    Complete,
    /// An ID token alone: userinfo could not be added.
    WithoutUserinfo,
    /// An access token: nothing is known about absent claims.
    AccessToken,
}

/// Builds the holder of a token from these verified claims.
pub(super) fn build_token_subject(
    name: &str,
    config: &IdentityProviderConfig,
    claims: &Map<String, Value>,
    issued_at: i64,
    completeness: ClaimCompleteness,
) -> Result<TokenSubject> {
    let subject = subject_claim(claims).map_err(|why| {
        super::token_rejection_error(
            match completeness {
                ClaimCompleteness::AccessToken => "access token",
                ClaimCompleteness::Complete | ClaimCompleteness::WithoutUserinfo => "sign-in",
            },
            why,
        )
    })?;
    Ok(TokenSubject {
        issuer: config.issuer.clone(),
        grant: evaluate_account_grant(name, config, claims, &subject, completeness),
        subject,
        issued_at,
    })
}

fn evaluate_account_grant(
    name: &str,
    config: &IdentityProviderConfig,
    claims: &Map<String, Value>,
    subject: &str,
    completeness: ClaimCompleteness,
) -> Result<AccountGrant, GrantRejection> {
    check_required_claim(config, claims, completeness)?;
    let groups = match non_null_claim(claims, &config.groups_claim) {
        None if is_claim_omitted(claims, &config.groups_claim) => {
            return Err(grant_rejection(GROUPS_OMITTED_MESSAGE, false));
        }
        None if completeness != ClaimCompleteness::Complete => None,
        claim => Some(selected_groups(config, claim)?),
    };
    let mut roles: Vec<_> = config.default_roles.clone();
    for group in groups.iter().flatten() {
        roles.extend(config.roles.get(group).into_iter().flatten());
    }
    let roles: Roles = roles.into_iter().collect();
    if roles.is_empty() {
        let text = "The identity provider authenticated you, but none of your groups has a role in this registry.";
        return Err(grant_rejection(text, groups.is_some()));
    }
    let claimed_name = claims.get(&config.name_claim).and_then(Value::as_str);
    Ok(AccountGrant {
        account_name: derive_account_name(claimed_name.unwrap_or(subject), name),
        groups,
        roles,
    })
}

/// Refuses claims that do not satisfy `require`.
fn check_required_claim(
    config: &IdentityProviderConfig,
    claims: &Map<String, Value>,
    completeness: ClaimCompleteness,
) -> Result<(), GrantRejection> {
    let Some(require) = &config.require else {
        let text = "No user of this identity provider can sign in: the operator of this registry has not \
                    configured who may (`require`).";
        return Err(grant_rejection(text, false));
    };
    let claim = non_null_claim(claims, &require.claim);
    let values = claim_texts(claim);
    if values.iter().any(|value| require.values.contains(value)) {
        return Ok(());
    }
    let is_absent = claim.is_none();
    if is_absent && is_claim_omitted(claims, &require.claim) {
        return Err(grant_rejection(GROUPS_OMITTED_MESSAGE, false));
    }
    let text = "The identity provider authenticated you, but this registry does not admit you: your claims do not \
                meet the condition that the registry's operator set (`require`).";
    Err(grant_rejection(
        text,
        !is_absent || completeness == ClaimCompleteness::Complete,
    ))
}

/// Returns a claim unless it is null: a null means the same as an absent claim (OpenID Connect Core 5.3.2).
pub(super) fn non_null_claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    claims.get(name).filter(|value| !value.is_null())
}

fn grant_rejection(text: impl Into<String>, ends_access: bool) -> GrantRejection {
    GrantRejection {
        text: text.into(),
        ends_access,
    }
}

fn subject_claim(claims: &Map<String, Value>) -> Result<String, TokenRejection> {
    let subject = claims.get("sub").and_then(Value::as_str);
    let fits = |subject: &&str| {
        (1..=MAX_SUBJECT_BYTES).contains(&subject.len()) && !subject.chars().any(char::is_control)
    };
    let subject = subject.filter(fits).ok_or(TokenRejection::Subject)?;
    Ok(subject.to_owned())
}

/// Returns the values of a claim as strings, if the claim is a string, a number, a boolean or a list of these.
fn claim_texts(claim: Option<&Value>) -> Vec<String> {
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

const GROUPS_OMITTED_MESSAGE: &str = "The identity provider omitted your groups, because there are too many for one \
     token. The provider's operator must configure it to send fewer: in Microsoft Entra, choose \"Groups assigned to \
     the application\" for the groups claim (Token configuration), or send app roles, for which this registry's \
     operator must set `groups_claim = \"roles\"`.";

/// Whether a claim is omitted because it must be requested elsewhere (OpenID Connect Core 5.6.2), or because it would
/// be too long: Microsoft Entra omits a long list of groups. An omitted claim is unknown, not empty.
fn is_claim_omitted(claims: &Map<String, Value>, name: &str) -> bool {
    let elsewhere = claims.get("_claim_names").and_then(Value::as_object);
    let has_groups = claim_texts(claims.get("hasgroups")) == ["true"];
    elsewhere.is_some_and(|names| names.contains_key(name)) || (name == "groups" && has_groups)
}

/// Returns the selected groups of a claim, in order. A group that cannot be stored makes the whole claim invalid:
/// if the group were left out, a policy that forbids something to its members would not apply.
fn selected_groups(
    config: &IdentityProviderConfig,
    claim: Option<&Value>,
) -> Result<Vec<String>, GrantRejection> {
    let group_count = match claim {
        None => 0,
        Some(Value::Array(several)) => several.len(),
        Some(_) => 1,
    };
    let mut groups = claim_texts(claim);
    let are_all_text = groups.len() == group_count;
    groups.retain(|name| config.selects_group(name));
    groups.sort_unstable();
    groups.dedup();
    let is_valid = |name: &String| {
        (1..=MAX_GROUP_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
    };
    if !are_all_text || groups.len() > MAX_GROUPS || !groups.iter().all(is_valid) {
        let text = format!(
            "The identity provider lists more than {MAX_GROUPS} groups for you, or a group whose name is empty, \
             longer than {MAX_GROUP_NAME_BYTES} bytes or not plain text. The provider's operator can limit the list \
             to the groups that this registry needs, or this registry's operator can select those groups \
             (`select_groups`)."
        );
        return Err(grant_rejection(text, false));
    }
    Ok(groups)
}

/// Derives an account name from the name that the provider gives for the person, with `-` in place of characters that
/// are not allowed, and the provider's own name.
fn derive_account_name(claimed_name: &str, provider: &str) -> String {
    let plain = claimed_name
        .chars()
        .take(MAX_ACCOUNT_NAME_CHARS)
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || "._-@".contains(c) => c,
            _ => '-',
        });
    let plain: String = plain.collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() {
        return format!("{}@{provider}", short_hash(claimed_name));
    }
    format!("{plain}@{provider}")
}

impl AccountGrant {
    /// An alternative account name if the first one is taken, unique for each subject.
    pub fn alternative_account_name(&self, subject: &str) -> String {
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
