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
    /// Account of the token, by default the caller's own. Only an admin may name another one, which is created if it does
    /// not exist.
    #[serde(
        default,
        deserialize_with = "not_empty",
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
    /// What it may be used for: at most what the account's roles allow, and for a token of one's own at most what the
    /// token of the request allows. By default all of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::ScopeSet>)]
    pub scopes: Option<Vec<Scope>>,
    /// Days until it expires, at most 365; by default 90.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::TokenDays>)]
    pub expires_in_days: Option<u32>,
}

/// A text that says something: absent is not the same as empty.
fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
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
    /// What it may be used for, of what the account's roles allow now.
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
    /// Time since which it is suspended until the next sign-in of its account: the identity provider has not confirmed the
    /// account for `identity.max_absence` days. Null while it is not.
    #[serde(default)]
    pub suspended_at: Option<Timestamp>,
}

/// A new token with its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// The token.
    #[serde(flatten)]
    pub token: Token,
    /// Secret to send as a bearer token. It is shown this once; only its hash is stored.
    pub secret: String,
}

/// A session of somebody who has signed in to the pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Id of the session.
    pub id: Uuid,
    /// Account of the session.
    pub account: String,
    /// The token that it was made with; it ends with that token.
    pub token: Option<Uuid>,
    /// The identity provider that it was made with.
    pub issuer: Option<String>,
    /// A few words about the browser.
    pub browser: String,
    /// Time of signing in.
    pub created_at: Timestamp,
    /// Time of its last use, some minutes behind; it ends eight hours after that.
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
    /// The role that may do most.
    #[schema(value_type = Role)]
    pub role: OpenEnum<Role>,
    /// All of its roles.
    #[schema(value_type = Vec<Role>)]
    pub roles: Vec<OpenEnum<Role>>,
    /// Its groups.
    pub groups: Vec<GroupName>,
    /// Time since which it may not be used; null while it may.
    pub disabled_at: Option<Timestamp>,
    /// Time since which its identity provider does not let it in; null while it does, and for an account of no provider.
    #[serde(default)]
    pub access_ended_at: Option<Timestamp>,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The name of a group, with who says who is in it: groups of two origins are two groups, whatever their names.
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
    /// Its name: not used yet, and no id.
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

/// A change of an account. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountPatch {
    /// All of its roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::RoleSet>)]
    pub roles: Option<Vec<Role>>,
    /// Whether it may not be used. Disabling ends its tokens and event streams at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// All of its groups of the origin `admin`; the others stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::GroupNames>)]
    pub groups: Option<Vec<String>>,
}

/// A group of accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// `admin` for a group whose members an admin sets.
    pub origin: String,
    /// Its name, unique for its origin.
    pub name: String,
    /// Names of the accounts in it, of the first 1 000 of them.
    pub members: Vec<String>,
    /// How many accounts are in it.
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
    /// What the token of the request may be used for, of what the account's roles allow now.
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Vec<OpenEnum<Scope>>,
    /// The token of the request; null for an access token of an identity provider.
    pub token: Option<Token>,
    /// The identity provider whose access token the request has; null for a token of this registry.
    #[serde(default)]
    pub issuer: Option<String>,
}
