//! Who asks, and the scopes that hold them.

use cedar_policy::{EntityUid, PrincipalConstraint};

/// An account with its groups, or an anonymous client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
    /// `None` for an anonymous client.
    pub account: Option<String>,
    /// As policies name them.
    pub groups: Vec<String>,
}

/// The account id of anonymous clients. It never stands for an account of that name.
pub const ANONYMOUS: &str = "anonymous";

impl Principal {
    /// A group that an admin has set has no issuer.
    pub fn group(issuer: Option<&str>, name: &str) -> String {
        match issuer {
            Some(issuer) => format!("{issuer}#{name}"),
            None => name.to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalScope {
    /// Everybody, anonymous clients too.
    Everybody,
    Account(String),
    Group(String),
    /// An account where a group is required, or the reverse.
    Nobody,
}

impl PrincipalScope {
    pub(crate) fn of(constraint: &PrincipalConstraint) -> Self {
        match constraint {
            PrincipalConstraint::Any => Self::Everybody,
            PrincipalConstraint::Is(kind) if kind.to_string() == "Account" => Self::Everybody,
            PrincipalConstraint::Is(_) => Self::Nobody,
            PrincipalConstraint::Eq(entity) => Self::account(entity),
            PrincipalConstraint::In(entity) => Self::member(entity),
            PrincipalConstraint::IsIn(kind, entity) if kind.to_string() == "Account" => {
                Self::member(entity)
            }
            PrincipalConstraint::IsIn(..) => Self::Nobody,
        }
    }

    fn account(entity: &EntityUid) -> Self {
        match entity.type_name().to_string().as_str() {
            "Account" => Self::Account(entity.id().unescaped().to_owned()),
            _ => Self::Nobody,
        }
    }

    /// In Cedar an entity is `in` itself too.
    fn member(entity: &EntityUid) -> Self {
        match entity.type_name().to_string().as_str() {
            "Group" => Self::Group(entity.id().unescaped().to_owned()),
            _ => Self::account(entity),
        }
    }

    pub fn holds(&self, principal: &Principal) -> bool {
        match self {
            Self::Everybody => true,
            // Nobody is anonymous by a name.
            Self::Account(name) if name == ANONYMOUS => principal.account.is_none(),
            Self::Account(name) => principal.account.as_ref() == Some(name),
            Self::Group(group) => principal.groups.contains(group),
            Self::Nobody => false,
        }
    }
}
