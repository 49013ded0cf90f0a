//! What each kind of caller is answered by each operation (docs/govern/accounts.md#who-may-do-what).

use super::authorisation::CALLERS;

/// The expected response to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedResponse {
    /// 2xx: done.
    Do,
    /// 401: a token is needed.
    SignIn,
    /// 403: another role or scope is needed.
    Not,
    /// 409: permitted, but impossible for this target.
    Clash,
    /// 404: it belongs to another account.
    Missing,
}
use ExpectedResponse::{Clash, Do, Missing, Not, SignIn};

/// One column for each of [`CALLERS`].
pub type ExpectedResponses = [ExpectedResponse; CALLERS.len()];

const ANYONE: ExpectedResponses = [Do; CALLERS.len()];
const ASKERS: ExpectedResponses = [Do, Not, Do, Do, Do, Not, Not, Not, Do, Do];
const ACCOUNTS: ExpectedResponses = [SignIn, Do, Do, Do, Do, Do, Do, Not, Do, Do];
const HOOK_MAKERS: ExpectedResponses = [SignIn, Do, Do, Do, Do, Not, Do, Not, Do, Do];
const PUBLISHERS: ExpectedResponses = [SignIn, Not, Do, Do, Do, Not, Not, Not, Do, Do];
const OWNERS: ExpectedResponses = [SignIn, Not, Not, Do, Do, Not, Not, Not, Do, Do];
const SEEING: ExpectedResponses = [SignIn, Not, Not, Not, Do, Do, Do, Not, Do, Do];
const DECIDERS: ExpectedResponses = [SignIn, Not, Not, Not, Do, Not, Do, Do, Do, Do];
const CURATORS: ExpectedResponses = [SignIn, Not, Not, Not, Do, Not, Not, Not, Do, Do];
const APPROVERS: ExpectedResponses = [SignIn, Not, Not, Not, Do, Not, Not, Not, Not, Do];
const PEOPLE: ExpectedResponses = [SignIn, Not, Not, Not, Not, Not, Do, Not, Do, Do];
const ADMINS: ExpectedResponses = [SignIn, Not, Not, Not, Not, Not, Not, Not, Do, Do];
/// Any account may ask for what none of them has.
const NOTHING: ExpectedResponses = [
    SignIn, Missing, Missing, Missing, Missing, Missing, Missing, Not, Missing, Missing,
];

/// What each may do.
pub const TABLE: &[(&str, ExpectedResponses)] = &[
    ("own_card", ANYONE),
    ("own_card_0_2", ANYONE),
    ("own_keys", ANYONE),
    ("agent_search", ANYONE),
    ("agent_suggest", ANYONE),
    ("agent_lookup", ANYONE),
    ("agent_show", ANYONE),
    ("agent_card", ANYONE),
    ("agent_card_well_known", ANYONE),
    ("agent_card_well_known_0_2", ANYONE),
    ("agent_card_as_well_known", ANYONE),
    ("agent_card_as_well_known_0_2", ANYONE),
    ("agent_versions", ANYONE),
    ("agent_diff", ANYONE),
    ("agent_findings", ANYONE),
    ("agent_endpoint", ANYONE),
    ("agent_similar", ANYONE),
    ("agent_suspend", CURATORS),
    ("agent_recertify", CURATORS),
    ("agent_resume", CURATORS),
    ("agent_deprecate", OWNERS),
    ("agent_undeprecate", OWNERS),
    ("agent_retire", OWNERS),
    ("agent_patch", OWNERS),
    ("card_lint", ANYONE),
    ("domain_register", PUBLISHERS),
    // Each registration has a result of its own.
    ("domain_register_all", PUBLISHERS),
    ("domain_list", ACCOUNTS),
    ("domain_show", ANYONE),
    ("domain_recrawl", ASKERS),
    ("domain_vouch", ADMINS),
    ("owner_vouch_set", ADMINS),
    ("owner_vouch_end", ADMINS),
    ("endpoint_vouch_set", ADMINS),
    ("endpoint_vouch_end", ADMINS),
    // An address on loopback has no name to prove.
    (
        "domain_verify",
        [
            SignIn, Not, Clash, Clash, Clash, Not, Not, Not, Clash, Clash,
        ],
    ),
    ("domain_transfer", OWNERS),
    ("domain_patch", OWNERS),
    ("domain_new_generation", ADMINS),
    ("domain_erase", ADMINS),
    ("key_enrol", OWNERS),
    ("key_withdraw", OWNERS),
    ("domain_delete", OWNERS),
    // The source is not served over https, and has no credential.
    (
        "source_credential_set",
        [SignIn, Not, Not, Clash, Not, Not, Not, Not, Clash, Clash],
    ),
    (
        "source_credential_remove",
        [
            SignIn, Not, Not, Missing, Not, Not, Not, Not, Missing, Missing,
        ],
    ),
    // The admin has registered the source, and its agent is approved.
    (
        "source_withdraw",
        [
            SignIn, Not, Missing, Missing, Missing, Not, Not, Not, Missing, Clash,
        ],
    ),
    ("review_list", ACCOUNTS),
    // Of an agent that the admin has registered, or the owner.
    (
        "review_show",
        [SignIn, Missing, Missing, Do, Do, Do, Do, Not, Do, Do],
    ),
    // Each decision has a result of its own.
    ("review_decide_all", APPROVERS),
    // Nobody has approved it yet.
    (
        "approval_withdraw",
        [SignIn, Not, Not, Not, Clash, Not, Not, Not, Not, Clash],
    ),
    (
        "comment_add",
        [SignIn, Not, Missing, Do, Do, Not, Not, Not, Do, Do],
    ),
    ("review_patch", CURATORS),
    ("agent_report", ANYONE),
    ("me_waiting", ACCOUNTS),
    ("me_seen", ACCOUNTS),
    ("review_approve", APPROVERS),
    // Only an admin who is a curator too, who may approve it anyway.
    (
        "review_break_glass",
        [SignIn, Not, Not, Not, Not, Not, Not, Not, Not, Clash],
    ),
    ("review_reject", APPROVERS),
    (
        "event_list",
        [SignIn, Not, Not, Not, Do, Not, Do, Not, Do, Do],
    ),
    ("peer_list", SEEING),
    ("policies_show", SEEING),
    ("policies_put", ADMINS),
    ("policy_history", SEEING),
    ("policy_decide", ANYONE),
    ("policy_decide_batch", DECIDERS),
    // It knows 403 alone for whatever is not allowed.
    (
        "gateway_decide",
        [Not, Not, Not, Not, Do, Not, Do, Do, Do, Do],
    ),
    // There is none with that id.
    ("decision_show", [Missing; CALLERS.len()]),
    ("policy_preview_start", ADMINS),
    ("policy_preview_show", ADMINS),
    ("policy_preview_cancel", ADMINS),
    ("policies_test", SEEING),
    ("policy_dry_run", SEEING),
    ("waiver_list", ACCOUNTS),
    ("waiver_grant", APPROVERS),
    ("waiver_end", CURATORS),
    ("reindex", ADMINS),
    // Of another account.
    ("token_create", ADMINS),
    // A code that this registry has not issued.
    ("login_exchange", [SignIn; CALLERS.len()]),
    ("token_list", ACCOUNTS),
    (
        "token_revoke",
        [
            SignIn, Missing, Missing, Missing, Missing, Missing, Missing, Not, Do, Do,
        ],
    ),
    ("session_list", ACCOUNTS),
    // There is none with that id.
    ("session_show", NOTHING),
    ("session_revoke", NOTHING),
    ("me", [SignIn, Do, Do, Do, Do, Do, Do, Do, Do, Do]),
    ("account_list", PEOPLE),
    ("account_create", ADMINS),
    ("account_show", PEOPLE),
    ("account_patch", ADMINS),
    ("saved_search_list", ACCOUNTS),
    ("saved_search_put", ACCOUNTS),
    // Of the admin with the bootstrap token, who has saved it.
    (
        "saved_search_delete",
        [
            SignIn, Missing, Missing, Missing, Missing, Missing, Missing, Not, Missing, Do,
        ],
    ),
    ("hook_list", ACCOUNTS),
    // A hook is told what its account may see, so the token needs all of that.
    ("hook_create", HOOK_MAKERS),
    // There is none with that id.
    ("hook_show", NOTHING),
    ("hook_delete", NOTHING),
    ("hook_confirm", NOTHING),
    ("hook_test", NOTHING),
    ("hook_rotate", NOTHING),
    ("hook_replay", NOTHING),
    ("hook_deliveries", NOTHING),
    ("watch_list", ACCOUNTS),
    ("agent_watch", ACCOUNTS),
    ("agent_unwatch", ACCOUNTS),
    ("feed_renew", ACCOUNTS),
    ("feed_revoke", ACCOUNTS),
    ("ard_search", ANYONE),
    ("ard_explore", ANYONE),
    ("ard_list", ANYONE),
    ("ard_retrieve", [Missing; CALLERS.len()]),
    ("ard_collection_search", ANYONE),
    ("ard_collection_explore", ANYONE),
    ("ard_collection_list", ANYONE),
    ("ard_collection_retrieve", [Missing; CALLERS.len()]),
    ("ard_catalog", ANYONE),
    ("ai_catalog", ANYONE),
    ("collection_list", ANYONE),
    ("collection_show", ANYONE),
    ("collection_put", CURATORS),
    ("collection_delete", CURATORS),
    ("group_list", PEOPLE),
    ("group_show", PEOPLE),
    ("group_put", ADMINS),
    ("group_delete", ADMINS),
    ("livez", ANYONE),
    ("readyz", ANYONE),
    ("metrics", ANYONE),
];
