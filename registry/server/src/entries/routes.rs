//! Handlers of entries.

use a2a_registry_api::EntryList;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, web};

use crate::entries::{EntryQuery, list};
use crate::http::answer;
use crate::http::auth::Anyone;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::state::State;

/// List entries of catalogs that are no agents
///
/// MCP servers, skills and whatever else the catalogs of proved domains list, as far as their publisher stands behind them.
/// Nobody has reviewed them: being listed is no permission to use one. They are never among `/v1/agents`. Empty, with a
/// hint, where the registry keeps none.
#[utoipa::path(
    tag = "agents",
    params(EntryQuery),
    security((), ("token" = [])),
    responses((status = 200, description = "A page of entries", body = EntryList))
)]
#[get("/v1/entries")]
pub async fn entry_list(
    caller: Anyone,
    query: Query<EntryQuery>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let found = list::entry_list(&state.context, &caller.0, &query.0).await?;
    answer::json(StatusCode::OK, &found)
}
