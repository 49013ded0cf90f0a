//! Accounts, groups, tokens and sessions as callers see them.

use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_domain::timestamp::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::limits;

/// A request for a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Account of the token, by default the caller's own. Only an admin may name another one, which is created if it
    /// does not exist.
    #[serde(
        default,
        deserialize_with = "deserialize_nonempty_text",
        skip_serializing_if = "String::is_empty"
    )]
    #[schema(value_type = limits::Name, required = false)]
    pub account: String,
    /// Role of the account, if it is created; otherwise the account must have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Purpose of the token, as a short name.
    #[schema(value_type = limits::Name)]
    pub name: String,
    /// Scopes of the token: at most those that the account's roles allow and, for the caller's own account, at most
    /// those of the request's token. By default all of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::ScopeSet>)]
    pub scopes: Option<Vec<Scope>>,
    /// Days until it expires, at most 365; by default 90.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::TokenDays>)]
    pub expires_in_days: Option<u32>,
}

/// Reads a text that must not be empty: absent is not the same as empty.
fn deserialize_nonempty_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Err(D::Error::custom("this must not be empty"));
    }
    Ok(text)
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Id of the token.
    pub id: Uuid,
    /// Account of the token.
    pub account: String,
    /// Purpose of the token, as a short name.
    pub name: String,
    /// First characters of the secret, to distinguish tokens.
    pub prefix: String,
    /// Scopes of the token, as far as the account's roles allow them now.
    #[serde(default)]
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Vec<OpenEnum<Scope>>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of expiry; null for the bootstrap token, which never expires.
    pub expires_at: Option<Timestamp>,
    /// Hour of its last use; null before the first.
    #[serde(default)]
    pub last_used_at: Option<Timestamp>,
    /// Time since which it is suspended, because the identity provider has not confirmed the account for
    /// `identity.max_absence` days; the next sign-in of its account ends the suspension. Null while it is not
    /// suspended.
    #[serde(default)]
    pub suspended_at: Option<Timestamp>,
}

/// A new token with its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// The token.
    #[serde(flatten)]
    pub token: Token,
    /// Secret to send as a bearer token. It is shown only once; only its hash is stored.
    pub secret: String,
}

/// A one-time code of `a2a-registry login`, to be exchanged for the token that an account has allowed in the browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginExchange {
    /// The code that the browser brought.
    #[schema(max_length = 2000)]
    pub code: String,
    /// The verifier of the challenge that the login began with (PKCE).
    #[schema(max_length = 2000)]
    pub verifier: String,
}

/// A browser session of a signed-in account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Id of the session.
    pub id: Uuid,
    /// Account of the session.
    pub account: String,
    /// The token that started it; the session ends with that token.
    pub token: Option<Uuid>,
    /// The identity provider that started it.
    pub issuer: Option<String>,
    /// Short description of the browser.
    pub browser: String,
    /// Time of signing in.
    pub created_at: Timestamp,
    /// Time of its last use, up to some minutes late; the session ends eight hours after that.
    pub last_seen_at: Timestamp,
    /// Time at which it ends in any case.
    pub expires_at: Timestamp,
}

/// An account: a person or a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// Id of the account.
    pub id: Uuid,
    /// Its name, as events and decisions record it.
    pub name: String,
    /// The role with the most permissions.
    #[schema(value_type = Role)]
    pub role: OpenEnum<Role>,
    /// All of its roles.
    #[schema(value_type = Vec<Role>)]
    pub roles: Vec<OpenEnum<Role>>,
    /// Its groups.
    pub groups: Vec<GroupName>,
    /// Time since which it is disabled; null while it is not.
    pub disabled_at: Option<Timestamp>,
    /// Time since which its identity provider denies it access; null while access is allowed, and without a provider.
    #[serde(default)]
    pub access_ended_at: Option<Timestamp>,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The name of a group, with the origin that decides its members: groups of two origins are different groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupName {
    /// `admin` for a group whose members an admin sets.
    pub origin: String,
    /// Its name.
    pub name: String,
}

/// An account to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    /// Its name, which must be unused and not an id.
    #[schema(value_type = limits::Name)]
    pub name: String,
    /// Its roles.
    #[schema(value_type = limits::RoleSet)]
    pub roles: Vec<Role>,
    /// Names of groups of the origin `admin`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = limits::GroupNames, required = false)]
    pub groups: Vec<String>,
}

/// A change of an account. Members left out keep their value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountPatch {
    /// All of its roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::RoleSet>)]
    pub roles: Option<Vec<Role>>,
    /// Whether it is disabled. Disabling ends its tokens and event streams at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// All of its groups of the origin `admin`; its other groups stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::GroupNames>)]
    pub groups: Option<Vec<String>>,
}

/// A group of accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// `admin` for a group whose members an admin sets.
    pub origin: String,
    /// Its name, unique within its origin.
    pub name: String,
    /// Names of the accounts in it, at most the first 1 000.
    pub members: Vec<String>,
    /// Number of accounts in it.
    #[serde(default)]
    pub member_count: u64,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The members of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupMembers {
    /// Names of all accounts in it.
    #[schema(value_type = limits::MemberNames)]
    pub members: Vec<String>,
}

/// The caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The account.
    #[serde(flatten)]
    pub account: Account,
    /// Scopes of the request's token, as far as the account's roles allow them now.
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Vec<OpenEnum<Scope>>,
    /// The token of the request; null for an access token of an identity provider.
    pub token: Option<Token>,
    /// The identity provider whose access token the request has; null for a token of this registry.
    #[serde(default)]
    pub issuer: Option<String>,
}
