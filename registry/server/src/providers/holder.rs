//! The holder of a token: whom it is about, and what the configuration makes of its claims.

use a2a_registry_domain::role::Roles;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::config::ProviderConfig;
use crate::error::{AppError, ErrorKind};
use crate::providers::refused::Refused;

/// Bytes of a subject, as OpenID Connect bounds it.
const MAX_SUBJECT: usize = 255;
/// Characters that an account takes over from a name.
const MAX_NAME: usize = 60;
/// Groups that one provider may put somebody in.
const MAX_GROUPS: usize = 100;
/// Bytes of the name of a group.
const MAX_GROUP_NAME: usize = 200;

/// The holder of a token that was verified, and whom the configuration lets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The issuer.
    pub issuer: String,
    /// Whom the token is about: never given to anybody else by this issuer.
    pub subject: String,
    /// The name of an account, if one is made: it ends with the provider's name, so that nobody can call themselves what
    /// somebody else is called.
    pub account_name: String,
    /// The groups, in order; `None` where an access token does not speak of groups.
    pub groups: Option<Vec<String>>,
    /// The roles that the map gives for these groups: one at least.
    pub roles: Roles,
    /// When the token was issued, in seconds since 1970.
    pub issued_at: i64,
}

/// The holder of a token with these verified claims. An identity token without a claim for groups says that there are none;
/// an access token says nothing about them.
pub(super) fn holder(
    name: &str,
    config: &ProviderConfig,
    claims: &Map<String, Value>,
    issued_at: i64,
    is_access_token: bool,
) -> Result<Holder, AppError> {
    let no_entry = |text: &str| Err(AppError::new(ErrorKind::Forbidden, text));
    let subject = subject(claims).map_err(|why| {
        super::refused(
            if is_access_token {
                "access token"
            } else {
                "sign-in"
            },
            why,
        )
    })?;
    let is_let_in = config.require.as_ref().is_some_and(|require| {
        let values = texts(claims.get(&require.claim));
        values.iter().any(|value| require.values.contains(value))
    });
    if !is_let_in {
        return no_entry(match config.require {
            Some(_) => {
                "The identity provider knows you, but this registry does not let you in: what its operator demands \
                 (`require`) is not among your claims."
            }
            None => {
                "Nobody of this identity provider may enter: the operator of this registry has not said who may \
                 (`require`)."
            }
        });
    }
    let groups = match claims.get(&config.groups_claim) {
        None if is_elsewhere(claims, &config.groups_claim) => return no_entry(GROUPS_ELSEWHERE),
        None if is_access_token => None,
        claim => Some(groups(claim)?),
    };
    let mut roles: Vec<_> = config.default_roles.clone();
    for group in groups.iter().flatten() {
        roles.extend(config.roles.get(group).into_iter().flatten());
    }
    let roles: Roles = roles.into_iter().collect();
    if roles.is_empty() {
        return no_entry(
            "The identity provider knows you, but none of your groups has a role in this registry.",
        );
    }
    let given = claims.get(&config.name_claim).and_then(Value::as_str);
    Ok(Holder {
        issuer: config.issuer.clone(),
        account_name: account_name(given.unwrap_or(&subject), name),
        subject,
        groups,
        roles,
        issued_at,
    })
}

fn subject(claims: &Map<String, Value>) -> Result<String, Refused> {
    let subject = claims.get("sub").and_then(Value::as_str);
    let fits = |subject: &&str| {
        (1..=MAX_SUBJECT).contains(&subject.len()) && !subject.chars().any(char::is_control)
    };
    let subject = subject.filter(fits).ok_or(Refused::Subject)?;
    Ok(subject.to_owned())
}

/// The texts of a claim: of one that is a text, a number or a truth value, or of a list of these.
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

const GROUPS_ELSEWHERE: &str = "The identity provider does not name your groups itself, but says where they could be asked for, \
                                which this registry does not do. Its operator can have it name only those that matter here.";

/// Whether a claim is left out because others can be asked for it (OpenID Connect Core 5.6.2): it is unknown then, not empty.
fn is_elsewhere(claims: &Map<String, Value>, name: &str) -> bool {
    let elsewhere = claims.get("_claim_names").and_then(Value::as_object);
    elsewhere.is_some_and(|names| names.contains_key(name))
}

/// The groups of a claim, in order. One that cannot be kept is refused with the whole: a policy may forbid something to it.
fn groups(claim: Option<&Value>) -> Result<Vec<String>, AppError> {
    let named = match claim {
        None | Some(Value::Null) => 0,
        Some(Value::Array(several)) => several.len(),
        Some(_) => 1,
    };
    let mut groups = texts(claim);
    let is_read = groups.len() == named;
    groups.sort_unstable();
    groups.dedup();
    let fits = |name: &String| {
        (1..=MAX_GROUP_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
    };
    if !is_read || groups.len() > MAX_GROUPS || !groups.iter().all(fits) {
        return Err(AppError::new(
            ErrorKind::Forbidden,
            format!(
                "The identity provider names more than {MAX_GROUPS} groups of yours, or one whose name is empty, longer \
                 than {MAX_GROUP_NAME} bytes or not plain text. Its operator can have it name only those that matter to \
                 this registry."
            ),
        ));
    }
    Ok(groups)
}

/// The name of an account: what the provider calls somebody, as far as an account may be called so, and the provider.
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

impl Holder {
    /// Another name of the account, for where somebody else has the first one: no two subjects have the same.
    pub fn other_account_name(&self) -> String {
        let hash = short_hash(&self.subject);
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
