//! The caller of an act: an account, or an anonymous client.

use std::net::IpAddr;

use a2a_registry_domain::role::{Permission, Role, Roles, Scopes};
use a2a_registry_policy::{PolicySet, Principal};
use a2a_registry_search::ALWAYS;
use uuid::Uuid;

use crate::config::{GovernanceConfig, Registration};
use crate::error::{AppError, Result};
use crate::visibility::policy_labels::{common_narrowing, narrowing};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    Token(Uuid),
    /// By the cookie of this session, on pages only.
    Session(Uuid),
    /// By an access token of this issuer.
    AccessToken(String),
    Feed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub id: Uuid,
    /// The name that decisions and events record.
    pub name: String,
    pub roles: Roles,
    /// The scopes of the token or session, of those that the roles allow.
    pub scopes: Scopes,
    /// Its groups of all origins, in order: at most as many as an account may have of each.
    pub groups: Vec<Uuid>,
    /// The same groups, as policies name them.
    pub group_names: Vec<String>,
    pub credential: Credential,
}

impl Account {
    /// Whether the roles and the token's scopes both allow this.
    pub fn may(&self, permission: Permission) -> bool {
        self.roles.may(&self.scopes, permission)
    }

    /// The role recorded with a source that it registers: no more than this token may do.
    pub fn registers_as(&self) -> Role {
        if self.may(Permission::Administer) {
            Role::Admin
        } else if self.may(Permission::Curate) {
            Role::Curator
        } else {
            Role::Publisher
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// `None` for an anonymous client.
    pub account: Option<Account>,
    /// The network of an anonymous client, by which its limits and shares are counted.
    pub network: Option<IpAddr>,
}

/// The label of agents that everyone may find.
pub const PUBLIC: &str = "public";
/// The label of agents that any signed-in caller may find with a token that may read.
pub const INTERNAL: &str = "internal";
/// The label of agents that callers with [`Permission::SeeAll`] may find.
pub const CURATORS: &str = "curators";

/// The label of agents that one account may find, listed or not.
pub fn account_label(account: Uuid) -> String {
    format!("account:{account}")
}

/// The label of agents that the members of one group may find.
pub fn group_label(group: Uuid) -> String {
    format!("group:{group}")
}

fn listed(set: &impl ToString) -> String {
    match set.to_string() {
        none if none.is_empty() => "none".to_owned(),
        some => some.replace(',', ", "),
    }
}

/// Whom searches, open streams and other shares of one caller are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerKey {
    /// An account, whatever its tokens and addresses.
    Account(Uuid),
    /// The network of a client without an account; `None` if the address is not known, and for the registry itself.
    Network(Option<IpAddr>),
}

impl Caller {
    pub fn key(&self) -> CallerKey {
        match &self.account {
            Some(account) => CallerKey::Account(account.id),
            None => CallerKey::Network(self.network),
        }
    }

    /// Whether the caller is this account, with a token that may read.
    pub fn is(&self, account: Option<Uuid>) -> bool {
        let own = self.account.as_ref();
        let own = own.filter(|account| account.may(Permission::Read));
        let own = own.map(|account| account.id);
        own.is_some() && own == account
    }

    pub fn may(&self, permission: Permission) -> bool {
        self.account
            .as_ref()
            .is_some_and(|account| account.may(permission))
    }

    pub fn account(&self) -> Result<&Account> {
        self.account.as_ref().ok_or_else(|| {
            AppError::unauthenticated("This needs a token: send it as `Authorization: Bearer …`.")
        })
    }

    /// The caller's account, if it has this permission.
    pub fn demand(&self, permission: Permission) -> Result<&Account> {
        match self.account()? {
            account if account.may(permission) => Ok(account),
            account => Err(AppError::forbidden(format!(
                "The account or its token may not do this: the roles of the account are {}, and the scopes {}.",
                listed(&account.roles),
                listed(&account.scopes)
            ))),
        }
    }

    /// Refuses a caller who may not register: in an open registry anyone may without an account, but an account always
    /// needs the permission.
    pub fn demand_registration(&self, governance: &GovernanceConfig) -> Result<()> {
        if self.account.is_some() || governance.registration == Registration::Token {
            self.demand(Permission::Register)?;
        }
        Ok(())
    }

    /// The caller as policies see it: an account whose token may not read counts as anonymous.
    pub fn principal(&self) -> Principal {
        let seeing = self.account.as_ref();
        let seeing = seeing.filter(|account| account.may(Permission::Read));
        seeing.map_or_else(Principal::default, |account| Principal {
            account: Some(account.name.clone()),
            groups: account.group_names.clone(),
        })
    }

    fn plain_labels(&self) -> Vec<String> {
        let mut labels = vec![PUBLIC.to_owned()];
        if self.may(Permission::Read) {
            labels.push(INTERNAL.to_owned());
        }
        labels
    }

    fn group_labels(&self) -> impl Iterator<Item = String> {
        let seeing = self.account.iter();
        let seeing = seeing.filter(|account| account.may(Permission::Read));
        seeing.flat_map(|account| account.groups.iter().copied().map(group_label))
    }

    /// The labels that all anonymous clients, or all accounts, have in common: they show what each of them finds.
    pub fn class_labels(&self, policies: &PolicySet) -> Vec<String> {
        narrowed(self.plain_labels(), common_narrowing(policies))
    }

    /// The caller's labels: an agent is visible to a caller with one of its labels, unless the policies of this set
    /// narrow that (`a2a_registry_search::sees`). Policies bind neither those who see everything nor owners.
    pub fn labels(&self, policies: &PolicySet) -> Vec<String> {
        let mut labels = self.plain_labels();
        labels.extend(self.group_labels());
        let mut own = None;
        if let Some(account) = &self.account {
            if account.may(Permission::SeeAll) {
                labels.push(CURATORS.to_owned());
            }
            own = account
                .may(Permission::Read)
                .then(|| account_label(account.id));
        }
        if self.may(Permission::SeeAll) {
            labels.extend(own);
            return labels;
        }
        let narrowing = narrowing(policies, &self.principal());
        let is_narrowed = narrowing.as_ref().is_none_or(|some| !some.is_empty());
        let mut labels = narrowed(labels, narrowing);
        labels.extend(own.map(|own| match is_narrowed {
            true => format!("{ALWAYS}{own}"),
            false => own,
        }));
        labels
    }
}

/// Plain labels as policies narrow them; none if nothing is permitted.
fn narrowed(mut plain: Vec<String>, narrowing: Option<Vec<String>>) -> Vec<String> {
    match narrowing {
        None => Vec::new(),
        Some(narrowing) => {
            plain.extend(narrowing);
            plain
        }
    }
}
