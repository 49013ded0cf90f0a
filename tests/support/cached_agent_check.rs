//! An agent as a caller sees it, read from its rows and compared with the answer that is kept in memory.

use a2a_registry_api::Agent;
use a2a_registry_core::agents::rendering::load_rendered_view;
use a2a_registry_core::agents::views;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;

/// One agent in full. Every call also checks that the answer kept since the last one is not out of date.
///
/// # Errors
/// As the registry gives them.
pub async fn agent_show_checked(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<Agent, AppError> {
    let kept = load_rendered_view(context, caller, agent).await;
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
