//! Frame of every page: header, navigation and notices.

use a2a_registry_core::config::Config;
use a2a_registry_core::text;
use a2a_registry_domain::role::Permission;

use crate::pages::assets;
use crate::requests::visitor::Visitor;

#[derive(Debug, Clone)]
pub(crate) struct FrameAccount {
    pub name: String,
    /// Token in every form of the page.
    pub form_token: String,
    /// Whether the account has full access, including policies.
    pub sees_all: bool,
    /// Whether the account may read the event log.
    pub reads_events: bool,
    /// Whether the account may read accounts and the state of the registry.
    pub reads_accounts: bool,
    /// Whether the account may change accounts, and see the tokens and sessions of others.
    pub administers: bool,
    /// Whether the account may register domains, within this session.
    pub may_register: bool,
    /// Whether the account may curate, within this session.
    pub curates: bool,
}

/// Parts of a page that do not depend on its subject.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// Whether `--approve-all` is active; every page warns about it.
    pub approve_all: bool,
    /// Whether pages link to the registry's catalog.
    pub catalog: bool,
    pub style: String,
    pub script: String,
    pub icon: String,
    /// Active entry of the navigation.
    pub here: &'static str,
    /// Maximum number of characters of a search's text.
    pub query_chars: usize,
    /// Account of the session.
    pub who: Option<FrameAccount>,
    /// Local URL to load after two seconds.
    pub refresh: Option<String>,
}

impl Frame {
    pub fn new(config: &Config, here: &'static str) -> Self {
        Self {
            approve_all: config.governance.approve_all,
            catalog: config.ard.enabled,
            style: assets::asset_url("style.css"),
            script: assets::asset_url("app.js"),
            icon: assets::asset_url("icon.svg"),
            here,
            query_chars: config.limits.query_chars,
            who: None,
            refresh: None,
        }
    }

    pub fn for_visitor(config: &Config, here: &'static str, visitor: &Visitor) -> Self {
        Self {
            who: FrameAccount::for_visitor(visitor),
            ..Self::new(config, here)
        }
    }

    /// Whether a registration of the signed-in account would be refused.
    pub fn denies_registration(&self) -> bool {
        self.who.as_ref().is_some_and(|who| !who.may_register)
    }
}

impl FrameAccount {
    fn for_visitor(visitor: &Visitor) -> Option<Self> {
        let account = visitor.caller.account.as_ref()?;
        let form_token = visitor.form_token.clone()?;
        Some(Self {
            name: text::single_line(&account.name, text::LINE),
            form_token,
            sees_all: visitor.caller.has_permission(Permission::SeeAll),
            reads_events: visitor.caller.has_permission(Permission::ReadEvents),
            reads_accounts: visitor.caller.has_permission(Permission::ReadAccounts),
            administers: visitor.caller.has_permission(Permission::Administer),
            may_register: visitor.caller.has_permission(Permission::Register),
            curates: visitor.caller.has_permission(Permission::Curate),
        })
    }
}
