//! API routes, which form the `OpenAPI` document, and the error formats of other protocols.
//!
//! The router uses the first matching route, so fixed words and verbs must precede identifiers that also match. It
//! tries the routes in order, so the most frequent requests come first.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::a2a_agent::{card_routes as own_card, error as a2a_fault};
use crate::api::accounts::{people, sessions};
use crate::api::agents::{self, cards};
use crate::api::policies::{self, decisions, waivers};
use crate::api::reviews::{self, feeds, writing};
use crate::api::search::{self, saved as saved_searches};
use crate::api::{
    accounts as tokens, collections, domains, events, federation, health, hooks, lint,
};
use crate::ard::{routes as ard, well_known};
use crate::mcp::endpoint as mcp;
use crate::problems::protocol_errors::ProtocolErrorFormat;

pub fn mount_api(routes: &mut ServiceConfig<'_>) {
    routes
        .service(search::agent_search)
        .service(cards::agent_card)
        // This route allows only `GET`, which no agent verb uses.
        .service(agents::agent_show)
        .service(cards::agent_card_as_well_known)
        .service(search::agent_suggest)
        .service(search::agent_lookup)
        .service(agents::agent_similar)
        .service(agents::agent_suspend)
        .service(writing::agent_resume)
        .service(agents::agent_deprecate)
        .service(agents::agent_undeprecate)
        .service(agents::agent_retire)
        .service(writing::agent_report)
        .service(writing::agent_recertify)
        .service(agents::agent_versions)
        .service(agents::agent_diff)
        .service(agents::agent_findings)
        .service(agents::agent_endpoint)
        .service(hooks::agent_watch)
        .service(hooks::agent_unwatch)
        .service(agents::agent_patch)
        .service(lint::card_lint);
    routes
        .service(domains::domain_register)
        .service(domains::domain_register_all)
        .service(domains::domain_list)
        .service(domains::domain_vouch)
        .service(domains::owner_vouch_set)
        .service(domains::owner_vouch_end)
        .service(domains::endpoint_vouch_set)
        .service(domains::endpoint_vouch_end)
        .service(domains::domain_recrawl)
        .service(domains::domain_verify)
        .service(domains::domain_transfer)
        .service(domains::domain_new_generation)
        .service(domains::domain_erase)
        .service(domains::key_enrol)
        .service(domains::key_withdraw)
        .service(domains::source_credential_set)
        .service(domains::source_credential_remove)
        .service(domains::source_withdraw)
        .service(domains::domain_show)
        .service(domains::domain_patch)
        .service(domains::domain_delete);
    routes
        .service(own_card::own_card)
        .service(own_card::own_keys);
    mount_policies(routes);
    mount_collections(routes);
    mount_ard(routes);
    mount_accounts_and_reviews(routes);
}

fn mount_accounts_and_reviews(routes: &mut ServiceConfig<'_>) {
    routes
        .service(reviews::review_list)
        .service(writing::review_decide_all)
        .service(writing::review_approve)
        .service(writing::review_reject)
        .service(writing::review_break_glass)
        .service(writing::approval_withdraw)
        .service(writing::comment_add)
        .service(writing::review_patch)
        .service(writing::me_seen)
        .service(reviews::me_waiting)
        .service(feeds::feed_renew)
        .service(feeds::feed_revoke)
        .service(reviews::review_show)
        .service(events::event_list)
        .service(events::reindex)
        .service(tokens::token_create)
        .service(tokens::login_exchange)
        .service(tokens::token_list)
        .service(tokens::token_revoke)
        .service(sessions::session_list)
        .service(sessions::session_show)
        .service(sessions::session_revoke)
        .service(people::me)
        .service(people::account_list)
        .service(people::account_create)
        .service(people::account_show)
        .service(people::account_patch)
        .service(people::group_list)
        .service(people::group_show)
        .service(people::group_put)
        .service(people::group_delete)
        .service(health::livez)
        .service(health::readyz)
        .service(health::metrics);
}

/// Mounts ARD, for the whole registry and for each collection.
fn mount_ard(routes: &mut ServiceConfig<'_>) {
    routes
        .service(ard::ard_search)
        .service(ard::ard_explore)
        .service(ard::ard_list)
        .service(ard::ard_retrieve)
        .service(federation::peer_list)
        .service(well_known::ard_catalog)
        .service(well_known::ai_catalog);
}

fn mount_collections(routes: &mut ServiceConfig<'_>) {
    routes
        .service(collections::collection_list)
        .service(collections::collection_show)
        .service(collections::collection_put)
        .service(collections::collection_delete)
        .service(saved_searches::saved_search_list)
        .service(saved_searches::saved_search_put)
        .service(saved_searches::saved_search_delete);
    routes
        .service(hooks::hook_confirm)
        .service(hooks::hook_test)
        .service(hooks::hook_rotate)
        .service(hooks::hook_replay)
        .service(hooks::hook_deliveries)
        .service(hooks::hook_list)
        .service(hooks::hook_create)
        .service(hooks::hook_show)
        .service(hooks::hook_delete)
        .service(hooks::watch_list);
}

fn mount_policies(routes: &mut ServiceConfig<'_>) {
    routes
        .service(policies::policy_history)
        .service(policies::policies_show)
        .service(policies::policies_put)
        .service(policies::policy_preview_start)
        .service(policies::policy_preview_show)
        .service(policies::policy_preview_cancel)
        .service(policies::policies_test)
        .service(policies::policy_dry_run)
        .service(decisions::gateway_decide)
        .service(decisions::policy_decide)
        .service(decisions::policy_decide_batch)
        .service(decisions::decision_show)
        .service(waivers::waiver_list)
        .service(waivers::waiver_grant)
        .service(waivers::waiver_end);
}

/// Error formats of protocols that have their own.
pub const PROTOCOL_ERRORS: &[ProtocolErrorFormat] = &[
    ProtocolErrorFormat {
        path: "/ard",
        render: ard::ard_error_response,
    },
    ProtocolErrorFormat {
        path: "/mcp",
        render: mcp::mcp_problem_response,
    },
    ProtocolErrorFormat {
        path: "/a2a",
        render: a2a_fault::a2a_problem_response,
    },
];
