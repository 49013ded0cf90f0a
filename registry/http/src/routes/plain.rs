//! Routes outside of the API, each with its method, path and handler.
//!
//! The router uses the first matching route, so fixed words and verbs must precede identifiers that also match.

use actix_web::http::Method;
use actix_web::{Resource, guard, web};

use crate::a2a_agent::{rest_routes as a2a_rest, rpc_routes as a2a_rpc};
use crate::api::reviews::feeds;
use crate::ard::well_known;
use crate::mcp::endpoint as mcp;
use crate::pages::accounts::{
    hooks as hook_page, login, mail_links, provider_sign_in, revocations as revocation_pages,
    sign_in, sign_in_link,
};
use crate::pages::domains::{lint_form, register as register_page};
use crate::pages::policies::{
    dry_run as dry_run_page, edit as policy_edit_page, history as policy_history_page,
    set as policy_page, waivers as waiver_page,
};
use crate::pages::reviews::{
    list as review_list_page, report as report_page, waiting as waiting_page,
};
use crate::pages::search::saved as saved_searches;
use crate::pages::{
    about, accounts as account_page, admin as admin_pages, agent as agent_page, assets,
    collections as collection_pages, domains as domain_page, events as events_page, manual,
    problems, reviews as review_page, search as search_page,
};
use crate::routes::openapi;

/// Defines functions that mount the routes, and [`PLAIN_ROUTES`], from which other methods of their paths are
/// rejected.
macro_rules! plain_routes {
    ($(
        $(#[$comment:meta])*
        $group:ident {
            $($method:ident $path:literal => $handler:path;)+
        }
    )+) => {
        /// Paths outside of the `OpenAPI` document, with their methods.
        pub const PLAIN_ROUTES: &[(&str, &str)] = &[$($(($path, stringify!($method)),)+)+];

        $(
            $(#[$comment])*
            pub fn $group(routes: &mut web::ServiceConfig) {
                $(routes.service(undocumented_route(Method::$method, $path).to($handler));)+
            }
        )+
    };
}

/// A route outside of the document, which the router skips for other methods. Metrics count these routes under one
/// name.
fn undocumented_route(method: Method, path: &str) -> Resource {
    web::resource(path)
        .name("page")
        .guard(guard::Method(method))
}

plain_routes! {
    /// Mounts the most frequent routes outside of the API, which are tried first. No other route has their paths.
    frequent {
        // The path has its own message protocol, which an OpenAPI document cannot describe.
        POST "/mcp" => mcp::handle_mcp;
        GET "/" => search_page::show_home_or_search;
    }

    /// Mounts the document and its page, the interfaces of the registry as an agent, and the HTML pages.
    pages {
        GET "/openapi.json" => openapi::openapi_json;
        GET "/docs" => openapi::redirect_to_docs;
        GET "/docs/{file:.*}" => openapi::serve_api_docs;
        GET "/manual" => manual::redirect_to_manual;
        GET "/manual/{path:.*}" => manual::show_manual;
        GET "/problems/{slug}" => problems::redirect_to_problem_kind;
        POST "/a2a" => a2a_rpc::rpc_call;
        // Some clients add a slash to the URL of an interface.
        POST "/a2a/" => a2a_rpc::rpc_call;
        POST "/a2a/v1/message:send" => a2a_rest::message_send;
        POST "/a2a/message:send" => a2a_rest::message_send;
        POST "/a2a/v1/message:stream" => a2a_rest::message_stream;
        POST "/a2a/message:stream" => a2a_rest::message_stream;
        GET "/a2a/v1/tasks" => a2a_rest::task_list;
        GET "/a2a/tasks" => a2a_rest::task_list;
        POST "/a2a/v1/tasks/{task}:cancel" => a2a_rest::task_cancel;
        POST "/a2a/tasks/{task}:cancel" => a2a_rest::task_cancel;
        GET "/a2a/v1/tasks/{task}:subscribe" => a2a_rest::task_subscribe;
        POST "/a2a/v1/tasks/{task}:subscribe" => a2a_rest::task_subscribe;
        GET "/a2a/tasks/{task}:subscribe" => a2a_rest::task_subscribe;
        POST "/a2a/tasks/{task}:subscribe" => a2a_rest::task_subscribe;
        GET "/a2a/v1/tasks/{task}" => a2a_rest::task_get;
        GET "/a2a/tasks/{task}" => a2a_rest::task_get;
        GET "/a2a/v1/tasks/{id}/pushNotificationConfigs" => a2a_rest::task_push;
        POST "/a2a/v1/tasks/{id}/pushNotificationConfigs" => a2a_rest::task_push;
        GET "/a2a/v1/tasks/{id}/pushNotificationConfigs/{c}" => a2a_rest::task_push;
        DELETE "/a2a/v1/tasks/{id}/pushNotificationConfigs/{c}" => a2a_rest::task_push;
        GET "/a2a/tasks/{id}/pushNotificationConfigs" => a2a_rest::task_push;
        POST "/a2a/tasks/{id}/pushNotificationConfigs" => a2a_rest::task_push;
        GET "/a2a/tasks/{id}/pushNotificationConfigs/{c}" => a2a_rest::task_push;
        DELETE "/a2a/tasks/{id}/pushNotificationConfigs/{c}" => a2a_rest::task_push;
        GET "/a2a/v1/extendedAgentCard" => a2a_rest::extended_card;
        GET "/a2a/extendedAgentCard" => a2a_rest::extended_card;
        GET "/agents/{agent}/" => agent_page::show_agent_page;
        GET "/agents/{agent}/diff" => agent_page::diff::show_diff;
        GET "/agents/{agent}/acts/{slug}" => agent_page::acts::show_agent_act;
        POST "/agents/{agent}/acts/{slug}" => agent_page::acts::submit_agent_act;
        GET "/agents/{agent}" => agent_page::redirect_to_trailing_slash;
        GET "/register" => register_page::show_register_page;
        POST "/register" => register_page::submit_registration;
        POST "/account/domains" => register_page::submit_registration_signed_in;
        POST "/register/lint" => lint_form::submit_lint_form;
        GET "/domains/{domain}" => domain_page::show_domain;
        POST "/domains/{domain}/verify" => domain_page::verify_domain;
        POST "/domains/{domain}/credential" => domain_page::credential_form::set_credential;
        POST "/domains/{domain}/credential/remove" => domain_page::credential_form::remove_credential;
        POST "/domains/{domain}/owner-vouch" => domain_page::owner_vouch::set_owner_vouch;
        POST "/domains/{domain}/owner-vouch/end" => domain_page::owner_vouch::end_owner_vouch;
        POST "/domains/{domain}/withdraw" => domain_page::withdrawal::submit_source_withdrawal;
        GET "/sign-in" => sign_in::sign_in_page;
        POST "/sign-in" => sign_in::submit_sign_in;
        POST "/sign-out" => sign_in::sign_out;
        POST "/sign-in/{provider}" => provider_sign_in::start_provider_sign_in;
        GET "/sign-in/{provider}/callback" => provider_sign_in::finish_provider_sign_in;
        GET "/sign-in-link" => sign_in_link::show_sign_in_link;
        POST "/sign-in-link" => sign_in_link::submit_sign_in_link;
        GET "/login" => login::show_login;
        POST "/login" => login::submit_login;
        GET "/account" => account_page::account_page;
        POST "/account/tokens" => account_page::create_token_from_form;
        POST "/account/tokens/revoke" => revocation_pages::submit_token_revocation;
        POST "/account/sessions/revoke" => revocation_pages::submit_session_revocation;
        GET "/account/hooks" => hook_page::show_hooks;
        POST "/account/hooks" => hook_page::create_hook_from_form;
        POST "/account/hooks/act" => hook_page::submit_hook_action;
        POST "/account/watches" => hook_page::submit_watch;
        GET "/mail/{hook}/{code}" => mail_links::show_mail_link;
        // Programs for mails send it too (RFC 8058).
        POST "/mail/{hook}/{code}" => mail_links::end_mails;
        POST "/mail/{hook}/{code}/confirm" => mail_links::confirm_mails;
        GET "/reviews" => review_list_page::show_reviews;
        POST "/reviews" => review_list_page::submit_review_decisions;
        GET "/reviews/{review}" => review_page::show_review;
        POST "/reviews/{review}" => review_page::submit_review_action;
        POST "/agents/{agent}/report" => report_page::submit_report;
        POST "/account/reports" => report_page::submit_report_signed_in;
        GET "/waiting" => waiting_page::show_inbox;
        POST "/waiting" => waiting_page::submit_mark_news_read;
        GET "/feeds/{secret}" => feeds::serve_review_feed;
        POST "/account/feed" => revocation_pages::submit_feed_renewal;
        POST "/account/feed/end" => revocation_pages::submit_feed_end;
        POST "/account/searches" => saved_searches::submit_saved_search;
        POST "/account/searches/delete" => saved_searches::submit_saved_search_deletion;
        GET "/collections" => collection_pages::show_collections;
        POST "/collections" => collection_pages::create_collection;
        GET "/collections/{collection}" => collection_pages::show_collection;
        POST "/collections/{collection}" => collection_pages::submit_collection;
        GET "/policies" => policy_page::show_policy_set;
        GET "/policies/edit" => policy_edit_page::show_policy_editor;
        POST "/policies/edit" => policy_edit_page::submit_policy_editor;
        GET "/policies/history" => policy_history_page::show_policy_history;
        POST "/policies/history" => policy_history_page::restore_policy_set;
        GET "/policies/{policy}/dry-run" => dry_run_page::show_dry_run;
        GET "/events" => events_page::show_events;
        GET "/events/export" => events_page::export_events;
        GET "/admin" => admin_pages::show_status;
        GET "/admin/accounts" => admin_pages::accounts::show_accounts;
        POST "/admin/accounts" => admin_pages::accounts::submit_account;
        GET "/admin/accounts/{account}" => admin_pages::account::show_account;
        POST "/admin/accounts/{account}" => admin_pages::account::submit_account_change;
        GET "/admin/groups" => admin_pages::show_groups;
        POST "/admin/groups" => admin_pages::submit_group;
        GET "/admin/tokens" => admin_pages::show_tokens;
        GET "/admin/sessions" => admin_pages::show_sessions;
        GET "/waivers" => waiver_page::show_waivers;
        POST "/waivers" => waiver_page::submit_waiver;
        POST "/waivers/end" => waiver_page::submit_waiver_end;
        GET "/about" => about::about_page;
        GET "/crawler" => about::about_page;
        GET "/robots.txt" => well_known::robots_txt;
        GET "/static/{name}" => assets::serve_asset;
    }
}
