//! Principals, and the scopes of policies that contain them.

use std::collections::BTreeSet;

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

/// The principals that a policy is about: those of its scope, less those that its clauses about the principal leave
/// out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalScope {
    /// Every principal, including anonymous clients.
    Everybody,
    Account(String),
    Group(String),
    /// No principal: the constraint names an account where a group is required, or the reverse.
    Nobody,
    Not(Box<Self>),
    /// The principals that are in each of these.
    All(Vec<Self>),
    /// The principals that are in one of these.
    Any(Vec<Self>),
}

impl PrincipalScope {
    pub(crate) fn from_constraint(constraint: &PrincipalConstraint) -> Self {
        match constraint {
            PrincipalConstraint::Any => Self::Everybody,
            PrincipalConstraint::Is(kind) => Self::from_entity_type(&kind.to_string()),
            PrincipalConstraint::Eq(entity) => {
                let (kind, id) = type_and_id(entity);
                Self::from_equal_entity(&kind, id)
            }
            PrincipalConstraint::In(entity) => {
                let (kind, id) = type_and_id(entity);
                Self::from_in_entity(&kind, id)
            }
            PrincipalConstraint::IsIn(kind, entity) => {
                let (entity_kind, id) = type_and_id(entity);
                Self::intersection(vec![
                    Self::from_entity_type(&kind.to_string()),
                    Self::from_in_entity(&entity_kind, id),
                ])
            }
        }
    }

    /// The principals of an entity type. Every principal is an account.
    pub(crate) fn from_entity_type(kind: &str) -> Self {
        match kind {
            "Account" => Self::Everybody,
            _ => Self::Nobody,
        }
    }

    pub(crate) fn from_equal_entity(kind: &str, id: String) -> Self {
        match kind {
            "Account" => Self::Account(id),
            _ => Self::Nobody,
        }
    }

    /// Reads the entity of an `in` constraint. In Cedar an entity is also `in` itself.
    pub(crate) fn from_in_entity(kind: &str, id: String) -> Self {
        match kind {
            "Group" => Self::Group(id),
            _ => Self::from_equal_entity(kind, id),
        }
    }

    pub(crate) fn complement(self) -> Self {
        match self {
            Self::Everybody => Self::Nobody,
            Self::Nobody => Self::Everybody,
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    pub(crate) fn intersection(scopes: Vec<Self>) -> Self {
        let mut parts = Vec::with_capacity(scopes.len());
        for scope in scopes {
            match scope {
                Self::Everybody => {}
                Self::Nobody => return Self::Nobody,
                Self::All(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match parts.len() {
            0 => Self::Everybody,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    pub(crate) fn union(scopes: Vec<Self>) -> Self {
        let mut parts = Vec::with_capacity(scopes.len());
        for scope in scopes {
            match scope {
                Self::Nobody => {}
                Self::Everybody => return Self::Everybody,
                Self::Any(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match parts.len() {
            0 => Self::Nobody,
            1 => parts.remove(0),
            _ => Self::Any(parts),
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
            Self::Not(inner) => !inner.contains(principal),
            Self::All(parts) => parts.iter().all(|part| part.contains(principal)),
            Self::Any(parts) => parts.iter().any(|part| part.contains(principal)),
        }
    }

    /// Adds each account and group that the scope names, as a scope of its own.
    pub fn collect_named<'a>(&'a self, named: &mut BTreeSet<&'a Self>) {
        match self {
            Self::Everybody | Self::Nobody => {}
            Self::Account(_) | Self::Group(_) => {
                named.insert(self);
            }
            Self::Not(inner) => inner.collect_named(named),
            Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.collect_named(named);
                }
            }
        }
    }
}

fn type_and_id(entity: &EntityUid) -> (String, String) {
    (
        entity.type_name().to_string(),
        entity.id().unescaped().to_owned(),
    )
}
