//! The routes outside of the API: each with its method, its path and its handler.
//!
//! The router takes the first route that matches, so fixed words and verbs stand before the identifiers that would
//! match them too.

use actix_web::http::Method;
use actix_web::{Resource, guard, web};

use crate::a2a_agent::{rest_routes as a2a_rest, rpc_routes as a2a_rpc};
use crate::api::reviews::feeds;
use crate::ard::well_known;
use crate::mcp::endpoint as mcp;
use crate::pages::accounts::{provider_sign_in, revocations as revocation_pages, sign_in};
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
    about, accounts as account_page, agent as agent_page, assets, collections as collection_pages,
    domains as domain_page, problems, reviews as review_page, search as search_page,
};
use crate::routes::openapi;

/// Functions that mount the routes, and [`PLAIN_ROUTES`], by which other methods of their paths are refused.
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
                $(routes.service(plain(Method::$method, $path).to($handler));)+
            }
        )+
    };
}

/// A route outside of the document, which the router skips for other methods. Metrics count them under one name.
fn plain(method: Method, path: &str) -> Resource {
    web::resource(path)
        .name("page")
        .guard(guard::Method(method))
}

plain_routes! {
    /// The most frequent requests outside of the API, whose paths no other route has: they are tried before all others.
    frequent {
        // Messages of its own protocol, which an OpenAPI document cannot describe.
        POST "/mcp" => mcp::mcp;
        GET "/" => search_page::show;
    }

    /// The document and its page, the interfaces of the registry as an agent, and the HTML pages.
    pages {
        GET "/openapi.json" => openapi::openapi_json;
        GET "/docs" => openapi::docs_folder;
        GET "/docs/{file:.*}" => openapi::docs;
        GET "/problems/{slug}" => problems::explained;
        POST "/a2a" => a2a_rpc::rpc_call;
        // Some clients add a slash to the address of an interface.
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
        GET "/agents/{agent}/" => agent_page::show;
        GET "/agents/{agent}/diff" => agent_page::diff::show;
        GET "/agents/{agent}" => agent_page::without_slash;
        GET "/register" => register_page::blank;
        POST "/register" => register_page::submit;
        POST "/account/domains" => register_page::submit_signed_in;
        POST "/register/lint" => lint_form::submit;
        GET "/domains/{domain}" => domain_page::show;
        POST "/domains/{domain}/verify" => domain_page::verify;
        POST "/domains/{domain}/owner-vouch" => domain_page::owner_vouch::set;
        POST "/domains/{domain}/owner-vouch/end" => domain_page::owner_vouch::end;
        GET "/sign-in" => sign_in::show;
        POST "/sign-in" => sign_in::submit;
        POST "/sign-out" => sign_in::sign_out;
        POST "/sign-in/{provider}" => provider_sign_in::begin;
        GET "/sign-in/{provider}/callback" => provider_sign_in::finish;
        GET "/account" => account_page::show;
        POST "/account/tokens" => account_page::token_make;
        POST "/account/tokens/revoke" => revocation_pages::token_end;
        POST "/account/sessions/revoke" => revocation_pages::session_end;
        GET "/reviews" => review_list_page::show;
        POST "/reviews" => review_list_page::decide;
        GET "/reviews/{review}" => review_page::show;
        POST "/reviews/{review}" => review_page::submit;
        POST "/agents/{agent}/report" => report_page::submit;
        POST "/account/reports" => report_page::submit_signed_in;
        GET "/waiting" => waiting_page::show;
        POST "/waiting" => waiting_page::seen;
        GET "/feeds/{secret}" => feeds::show;
        POST "/account/feed" => revocation_pages::feed_renewed;
        POST "/account/feed/end" => revocation_pages::feed_ended;
        POST "/account/searches" => saved_searches::save;
        POST "/account/searches/delete" => saved_searches::forget;
        GET "/collections" => collection_pages::show_all;
        POST "/collections" => collection_pages::create;
        GET "/collections/{collection}" => collection_pages::show;
        POST "/collections/{collection}" => collection_pages::submit;
        GET "/policies" => policy_page::show;
        GET "/policies/edit" => policy_edit_page::show;
        POST "/policies/edit" => policy_edit_page::submit;
        GET "/policies/history" => policy_history_page::show;
        POST "/policies/history" => policy_history_page::restore;
        GET "/policies/{policy}/dry-run" => dry_run_page::show;
        GET "/waivers" => waiver_page::show;
        POST "/waivers" => waiver_page::grant;
        POST "/waivers/end" => waiver_page::end;
        GET "/about" => about::show;
        GET "/crawler" => about::show;
        GET "/robots.txt" => well_known::robots;
        GET "/static/{name}" => assets::show;
    }
}
