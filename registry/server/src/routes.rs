//! The routes of the API and of everything else but the API document and its page.
//!
//! The router takes the first route that matches, so fixed words and verbs stand before the identifiers that would
//! match them too. It tries the routes one after the other, so the most frequent requests stand first.

use actix_web::web;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::a2a_agent::{
    card_routes as own_card, fault as a2a_fault, rest_routes as a2a_rest, rpc_routes as a2a_rpc,
};
use crate::about;
use crate::accounts::{
    page as account_page, people_routes as people, provider_sign_in, revocation_pages,
    routes as tokens, session_routes as sessions, sign_in,
};
use crate::agent_page;
use crate::agents::{card_routes as cards, routes as agents};
use crate::ard::{routes as ard, well_known};
use crate::collections::{pages as collection_pages, routes as collections};
use crate::domains::{lint_form, page as domain_page, register_page, routes as domains};
use crate::entries::routes as entries;
use crate::events::routes as events;
use crate::federation::routes as federation;
use crate::health::routes as health;
use crate::http::allowed;
use crate::http::dialect_errors::DialectErrors;
use crate::lint::routes as lint;
use crate::mcp::endpoint as mcp;
use crate::pages::{assets, problems};
use crate::policies::routes as policies;
use crate::policies::waiver_routes as waivers;
use crate::policies::{
    dry_run_page, edit_page as policy_edit_page, history_page as policy_history_page,
    set_page as policy_page, waiver_page,
};
use crate::reviews::{
    feed_routes as feeds, list_page as review_list_page, page as review_page, report_page,
    routes as reviews, waiting_page, writing_routes as writing,
};
use crate::search::{page as search_page, routes as search, saved_routes as saved_searches};

/// The operations of the API, which make up the `OpenAPI` document.
pub fn api(routes: &mut ServiceConfig<'_>) {
    routes
        .service(cards::agent_card)
        .service(search::agent_search)
        // It takes `GET` alone, which no verb behind an agent does.
        .service(agents::agent_show)
        .service(cards::agent_card_well_known)
        .service(cards::agent_card_well_known_0_2)
        .service(cards::agent_card_as_well_known)
        .service(cards::agent_card_as_well_known_0_2)
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
        .service(agents::agent_patch)
        .service(lint::card_lint);
    routes
        .service(domains::domain_register)
        .service(domains::domain_register_all)
        .service(domains::domain_list)
        .service(domains::domain_vouch)
        .service(domains::owner_vouch_set)
        .service(domains::owner_vouch_end)
        .service(domains::domain_recrawl)
        .service(domains::domain_verify)
        .service(domains::domain_transfer)
        .service(domains::domain_new_generation)
        .service(domains::key_enrol)
        .service(domains::key_withdraw)
        .service(domains::source_withdraw)
        .service(domains::domain_show)
        .service(domains::domain_patch)
        .service(domains::domain_delete);
    routes
        .service(own_card::own_card)
        .service(own_card::own_card_0_2)
        .service(own_card::own_keys);
    policies_api(routes);
    collections_api(routes);
    ard_api(routes);
    people_and_reviews(routes);
}

/// Reviews, events, tokens, accounts and groups, and the health of the process.
fn people_and_reviews(routes: &mut ServiceConfig<'_>) {
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

/// ARD, of everything and of each collection.
fn ard_api(routes: &mut ServiceConfig<'_>) {
    routes
        .service(ard::ard_search)
        .service(ard::ard_explore)
        .service(ard::ard_list)
        .service(ard::ard_retrieve)
        .service(ard::ard_collection_search)
        .service(ard::ard_collection_explore)
        .service(ard::ard_collection_list)
        .service(ard::ard_collection_retrieve)
        .service(federation::peer_list)
        .service(well_known::ard_catalog)
        .service(well_known::ai_catalog);
}

fn collections_api(routes: &mut ServiceConfig<'_>) {
    routes
        .service(entries::entry_list)
        .service(collections::collection_list)
        .service(collections::collection_show)
        .service(collections::collection_put)
        .service(collections::collection_delete)
        .service(saved_searches::saved_search_list)
        .service(saved_searches::saved_search_put)
        .service(saved_searches::saved_search_delete);
}

fn policies_api(routes: &mut ServiceConfig<'_>) {
    routes
        .service(policies::policy_history)
        .service(policies::policies_show)
        .service(policies::policies_put)
        .service(policies::policies_preview)
        .service(policies::policies_test)
        .service(policies::policy_dry_run)
        .service(policies::policy_decide)
        .service(waivers::waiver_list)
        .service(waivers::waiver_grant)
        .service(waivers::waiver_end);
}

/// The most frequent requests outside of the API, whose paths no other route has: they are tried before all others.
pub fn frequent(routes: &mut web::ServiceConfig) {
    routes.service(mcp::mcp).service(search_page::show);
}

/// Routes of problem kinds and HTML pages, and the fallback for unknown paths.
pub fn pages_and_fallback(routes: &mut web::ServiceConfig) {
    routes
        .service(problems::explained)
        .configure(a2a)
        // The HTML pages.
        .service(agent_page::show)
        .service(agent_page::diff::show)
        .service(agent_page::without_slash)
        .service(register_page::blank)
        .service(register_page::submit)
        .service(register_page::submit_signed_in)
        .service(lint_form::submit)
        .service(domain_page::show)
        .service(domain_page::verify)
        .service(domain_page::owner_vouch::set)
        .service(domain_page::owner_vouch::end)
        .service(sign_in::show)
        .service(sign_in::submit)
        .service(sign_in::sign_out)
        .service(provider_sign_in::begin)
        .service(provider_sign_in::finish)
        .service(account_page::show)
        .service(account_page::token_make)
        .service(revocation_pages::token_end)
        .service(revocation_pages::session_end)
        .service(review_list_page::show)
        .service(review_list_page::decide)
        .service(review_page::show)
        .service(review_page::submit)
        .service(report_page::submit)
        .service(report_page::submit_signed_in)
        .service(waiting_page::show)
        .service(waiting_page::seen)
        .service(feeds::show)
        .service(revocation_pages::feed_renewed)
        .service(revocation_pages::feed_ended)
        .service(saved_searches::save)
        .service(saved_searches::forget)
        .service(collection_pages::show_all)
        .service(collection_pages::create)
        .service(collection_pages::show)
        .service(collection_pages::submit)
        .service(policy_page::show)
        .service(policy_edit_page::show)
        .service(policy_edit_page::submit)
        .service(policy_history_page::show)
        .service(policy_history_page::restore)
        .service(dry_run_page::show)
        .service(waiver_page::show)
        .service(waiver_page::grant)
        .service(waiver_page::end)
        .service(about::show)
        .service(well_known::robots)
        .service(assets::show)
        .default_service(web::to(allowed::unrouted));
}

/// The interfaces of the registry as an agent: the document of A2A describes them.
fn a2a(routes: &mut web::ServiceConfig) {
    routes
        .service(a2a_rpc::rpc_call)
        .service(a2a_rest::message_send)
        .service(a2a_rest::message_stream)
        .service(a2a_rest::task_list)
        .service(a2a_rest::task_cancel)
        .service(a2a_rest::task_subscribe)
        .service(a2a_rest::task_get)
        .service(a2a_rest::task_push)
        .service(a2a_rest::extended_card);
}

/// How failures are written where a dialect has a form of its own.
pub const DIALECT_ERRORS: &[DialectErrors] = &[
    DialectErrors {
        path: "/ard",
        render: ard::failure,
    },
    DialectErrors {
        path: "/mcp",
        render: mcp::refused,
    },
    DialectErrors {
        path: "/a2a",
        render: a2a_fault::failure,
    },
];

/// Paths outside of the `OpenAPI` document, with their methods. The tidy tests compare them with the handlers.
pub const PLAIN_ROUTES: &[(&str, &str)] = &[
    // Messages of its own protocol, which an OpenAPI document cannot describe.
    ("/mcp", "POST"),
    ("/openapi.json", "GET"),
    ("/docs", "GET"),
    ("/docs/{file:.*}", "GET"),
    ("/problems/{slug}", "GET"),
    ("/", "GET"),
    ("/agents/{agent}", "GET"),
    ("/agents/{agent}/", "GET"),
    ("/agents/{agent}/diff", "GET"),
    ("/agents/{agent}/report", "POST"),
    ("/waiting", "GET"),
    ("/waiting", "POST"),
    ("/reviews", "GET"),
    ("/reviews", "POST"),
    ("/reviews/{review}", "GET"),
    ("/reviews/{review}", "POST"),
    ("/policies", "GET"),
    ("/policies/edit", "GET"),
    ("/policies/edit", "POST"),
    ("/policies/history", "GET"),
    ("/policies/history", "POST"),
    ("/policies/{policy}/dry-run", "GET"),
    ("/waivers", "GET"),
    ("/waivers", "POST"),
    ("/waivers/end", "POST"),
    ("/register", "GET"),
    ("/register", "POST"),
    ("/register/lint", "POST"),
    ("/domains/{domain}", "GET"),
    ("/domains/{domain}/verify", "POST"),
    ("/domains/{domain}/owner-vouch", "POST"),
    ("/domains/{domain}/owner-vouch/end", "POST"),
    ("/sign-in", "GET"),
    ("/sign-in", "POST"),
    ("/sign-out", "POST"),
    ("/sign-in/{provider}", "POST"),
    ("/sign-in/{provider}/callback", "GET"),
    ("/account", "GET"),
    ("/account/domains", "POST"),
    ("/account/reports", "POST"),
    ("/account/tokens", "POST"),
    ("/account/tokens/revoke", "POST"),
    ("/account/sessions/revoke", "POST"),
    ("/feeds/{secret}", "GET"),
    ("/account/feed", "POST"),
    ("/account/feed/end", "POST"),
    ("/account/searches", "POST"),
    ("/account/searches/delete", "POST"),
    ("/collections", "GET"),
    ("/collections", "POST"),
    ("/collections/{collection}", "GET"),
    ("/collections/{collection}", "POST"),
    ("/robots.txt", "GET"),
    ("/about", "GET"),
    ("/crawler", "GET"),
    ("/static/{name}", "GET"),
    ("/a2a", "POST"),
    ("/a2a/", "POST"),
    ("/a2a/v1/message:send", "POST"),
    ("/a2a/v1/message:stream", "POST"),
    ("/a2a/v1/tasks", "GET"),
    ("/a2a/v1/tasks/{task}", "GET"),
    ("/a2a/v1/tasks/{task}:cancel", "POST"),
    ("/a2a/v1/tasks/{task}:subscribe", "GET"),
    ("/a2a/v1/tasks/{task}:subscribe", "POST"),
    ("/a2a/v1/tasks/{id}/pushNotificationConfigs", "GET"),
    ("/a2a/v1/tasks/{id}/pushNotificationConfigs", "POST"),
    ("/a2a/v1/tasks/{id}/pushNotificationConfigs/{c}", "GET"),
    ("/a2a/v1/tasks/{id}/pushNotificationConfigs/{c}", "DELETE"),
    ("/a2a/v1/extendedAgentCard", "GET"),
    ("/a2a/message:send", "POST"),
    ("/a2a/message:stream", "POST"),
    ("/a2a/tasks", "GET"),
    ("/a2a/tasks/{task}", "GET"),
    ("/a2a/tasks/{task}:cancel", "POST"),
    ("/a2a/tasks/{task}:subscribe", "GET"),
    ("/a2a/tasks/{task}:subscribe", "POST"),
    ("/a2a/tasks/{id}/pushNotificationConfigs", "GET"),
    ("/a2a/tasks/{id}/pushNotificationConfigs", "POST"),
    ("/a2a/tasks/{id}/pushNotificationConfigs/{c}", "GET"),
    ("/a2a/tasks/{id}/pushNotificationConfigs/{c}", "DELETE"),
    ("/a2a/extendedAgentCard", "GET"),
];
