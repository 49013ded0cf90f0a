//! Checks the cached response about an agent against the rows, for one caller.

use a2a_registry_api::Agent;
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::agents::views;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;

/// Returns one agent in full, and checks that the response cached since the last call is not out of date.
///
/// # Errors
/// Those of the registry.
pub async fn agent_show_checked(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<Agent, AppError> {
    let kept = load_cached_agent_view(context, caller, agent).await;
    let read = views::agent_show(context, caller, agent).await;
    match (&kept, &read) {
        (Ok(kept), Ok(read)) => assert_eq!(kept, read, "the answer that is kept of {agent}"),
        (Err(kept), Err(read)) => {
            let shown = |error: &AppError| (error.kind, error.public.clone());
            assert_eq!(shown(kept), shown(read), "the refusal for {agent}");
        }
        _ => panic!("{agent} is answered with {kept:?} and its rows say {read:?}"),
    }
    read
}
