//! Principals, and the scopes of policies that contain them.

use cedar_policy::{EntityUid, PrincipalConstraint};

/// An account with its groups, or an anonymous client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
    /// `None` for an anonymous client.
    pub account: Option<String>,
    /// Group ids, as policies name them.
    pub groups: Vec<String>,
}

/// The account id of anonymous clients. An account of this name never matches it.
pub const ANONYMOUS_ACCOUNT: &str = "anonymous";

impl Principal {
    /// The id of a group in policies. A group set by an admin has no issuer.
    pub fn format_group_id(issuer: Option<&str>, name: &str) -> String {
        match issuer {
            Some(issuer) => format!("{issuer}#{name}"),
            None => name.to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalScope {
    /// Every principal, including anonymous clients.
    Everybody,
    Account(String),
    Group(String),
    /// No principal: the constraint names an account where a group is required, or the reverse.
    Nobody,
}

impl PrincipalScope {
    pub(crate) fn from_constraint(constraint: &PrincipalConstraint) -> Self {
        match constraint {
            PrincipalConstraint::Any => Self::Everybody,
            PrincipalConstraint::Is(kind) if kind.to_string() == "Account" => Self::Everybody,
            PrincipalConstraint::Is(_) => Self::Nobody,
            PrincipalConstraint::Eq(entity) => Self::from_account_entity(entity),
            PrincipalConstraint::In(entity) => Self::from_in_entity(entity),
            PrincipalConstraint::IsIn(kind, entity) if kind.to_string() == "Account" => {
                Self::from_in_entity(entity)
            }
            PrincipalConstraint::IsIn(..) => Self::Nobody,
        }
    }

    fn from_account_entity(entity: &EntityUid) -> Self {
        match entity.type_name().to_string().as_str() {
            "Account" => Self::Account(entity.id().unescaped().to_owned()),
            _ => Self::Nobody,
        }
    }

    /// Reads the entity of an `in` constraint. In Cedar an entity is also `in` itself.
    fn from_in_entity(entity: &EntityUid) -> Self {
        match entity.type_name().to_string().as_str() {
            "Group" => Self::Group(entity.id().unescaped().to_owned()),
            _ => Self::from_account_entity(entity),
        }
    }

    pub fn contains(&self, principal: &Principal) -> bool {
        match self {
            Self::Everybody => true,
            // An account named "anonymous" is not an anonymous client.
            Self::Account(name) if name == ANONYMOUS_ACCOUNT => principal.account.is_none(),
            Self::Account(name) => principal.account.as_ref() == Some(name),
            Self::Group(group) => principal.groups.contains(group),
            Self::Nobody => false,
        }
    }
}
