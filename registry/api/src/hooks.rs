//! Hooks as callers see them: what accounts are told, where, and what became of it (docs/govern/notifications.md).

use a2a_registry_domain::hook::{DeliveryState, HookFormat, HookState, NoticeKind};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::SecretText;
use super::limits::{self, MAX_CONDITION_VALUES};

/// Which notices a hook sends. An agent must meet every condition that is given; the values of one condition are
/// alternatives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HookFilter {
    /// The kinds of notices, by default all that the account may get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NoticeKind>)]
    pub kinds: Vec<OpenEnum<NoticeKind>>,
    /// Ids of agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = limits::HookAgents)]
    pub agents: Vec<Uuid>,
    /// Whether to add the agents that the account watches to `agents`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
    /// Domains that publish the cards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = limits::HookTexts)]
    pub domains: Vec<String>,
    /// Names of collections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = limits::HookTexts)]
    pub collections: Vec<String>,
    /// Id of a saved search of the account. It has filters of its own, so `domains` and `collections` cannot be given
    /// with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Uuid>,
}

impl HookFilter {
    /// Whether notices of this kind are among those that it names.
    pub fn includes_kind(&self, kind: NoticeKind) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|one| *one == kind)
    }

    /// Whether a condition has more values than a request may give.
    pub fn has_too_many_values(&self) -> bool {
        let counts = [
            self.kinds.len(),
            self.agents.len(),
            self.domains.len(),
            self.collections.len(),
        ];
        counts.into_iter().any(|count| count > MAX_CONDITION_VALUES)
    }
}

/// A hook to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewHook {
    /// Its name, unique within the account.
    #[schema(value_type = limits::Name)]
    pub name: String,
    /// The URL to which notices are sent, or `mailto:` and an address. It is stored encrypted, and never shown again
    /// beyond its host.
    #[schema(value_type = limits::HookUrl)]
    pub url: SecretText,
    /// The body of deliveries: `cloudevents` (by default) or `slack`; for an address `mail`, a digest at
    /// most hourly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<HookFormat>,
    /// Which notices it sends; by default all that the account may receive.
    #[serde(default)]
    pub filter: HookFilter,
}

/// A hook, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hook {
    /// Id of the hook.
    pub id: Uuid,
    /// The account that owns the hook, and whose permissions decide which notices it sends.
    pub account: String,
    /// Its name.
    pub name: String,
    /// The body of deliveries: `cloudevents`, `slack` or `mail`.
    #[schema(value_type = HookFormat)]
    pub format: OpenEnum<HookFormat>,
    /// `unconfirmed` until the receiver has returned the challenge, `active`, or `ended` after an answer with status
    /// 410, or after the recipient of its mails has ended them.
    #[schema(value_type = HookState)]
    pub state: OpenEnum<HookState>,
    /// Which notices it sends.
    pub filter: HookFilter,
    /// Scheme, host and port of its URL, or the domain of its mail address; null if the registry has lost the key that
    /// opens it.
    pub target: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Deliveries that wait to be sent.
    pub waiting: u64,
    /// Deliveries that were given up and can be replayed.
    pub dead: u64,
    /// Time of the last delivery.
    pub last_success_at: Option<Timestamp>,
    /// Time since which deliveries fail; null while they succeed.
    pub failing_since: Option<Timestamp>,
    /// Why the last failed delivery failed.
    pub last_error: Option<String>,
}

/// Hooks, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookList {
    /// Hooks on this page.
    pub hooks: Vec<Hook>,
    /// `page_token` of the next page; null on the last page.
    pub next_page_token: Option<String>,
}

/// A hook with the keys that verify its deliveries. They are shown only once. Mails have none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedHook {
    /// The hook.
    #[serde(flatten)]
    pub hook: Hook,
    /// The secret of the `v1` signatures (HMAC-SHA256), as Standard Webhooks writes it: `whsec_…`; null for mails.
    pub secret: Option<String>,
    /// The public key of the `v1a` signatures (Ed25519): `whpk_…`; null for mails.
    pub public_key: Option<String>,
}

/// The challenge that the receiver of a hook has got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HookConfirmation {
    /// The text in the receiver's first message.
    #[schema(value_type = limits::CredentialText)]
    pub challenge: String,
}

/// Result of a test delivery or, while a hook is unconfirmed, of sending the challenge again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookTest {
    /// Whether the receiver answered with a status of success.
    pub delivered: bool,
    /// The status of the answer, of HTTP or SMTP; null without one.
    pub status: Option<u16>,
    /// Why the delivery failed, or the receiver has not confirmed the hook.
    pub error: Option<String>,
    /// The state of the hook afterwards.
    #[schema(value_type = HookState)]
    pub state: OpenEnum<HookState>,
}

/// Which deliveries to send again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HookReplay {
    /// One that was delivered or given up; by default all that were given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Uuid>,
}

/// The number of deliveries that are sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookReplayed {
    /// Their number.
    pub deliveries: u64,
}

/// A delivery of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookDelivery {
    /// Its id, which the receiver gets as `webhook-id`.
    pub id: Uuid,
    /// Kind of the notice; while the delivery waits, its kind when it was queued.
    #[schema(value_type = NoticeKind)]
    pub kind: OpenEnum<NoticeKind>,
    /// The agent or the review that it is about.
    pub subject: String,
    /// Time of the change that the notice is about.
    pub at: Timestamp,
    /// `waiting`, `delivered` or `dead`.
    #[schema(value_type = DeliveryState)]
    pub state: OpenEnum<DeliveryState>,
    /// Attempts so far.
    pub attempts: u32,
    /// Time of the next attempt; null if it does not wait.
    pub due_at: Option<Timestamp>,
    /// The status of the last answer, of HTTP or SMTP.
    pub status: Option<u16>,
    /// Why the last attempt failed.
    pub error: Option<String>,
}

/// Deliveries of a hook, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookDeliveryList {
    /// Deliveries on this page.
    pub deliveries: Vec<HookDelivery>,
    /// `page_token` of the next page; null on the last page.
    pub next_page_token: Option<String>,
}

/// The agents that an account watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WatchList {
    /// Ids of the agents, the last added first; at most 500.
    pub agents: Vec<Uuid>,
    /// Whether a hook of the account sends notices about them.
    pub has_hook: bool,
}
