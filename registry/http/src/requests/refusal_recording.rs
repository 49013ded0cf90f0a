//! Records rejected credentials and sign-ins: in a metric, in the log, and in counts for the events of each minute.

use a2a_registry_core::process_state::refusal_counters::SIGN_IN_LOG;
use a2a_registry_domain::event::EventKind;
use actix_web::HttpRequest;

use crate::limits::client_address::client_address;
use crate::problems::problem::Problem;
use crate::requests::server_state::server_state;

/// Records the rejection of a credential or a sign-in, if that is the problem. Does not write to the database.
pub(crate) fn record_credential_refusal(request: &HttpRequest, problem: &Problem) {
    let (Some(reason), Ok(state)) = (problem.refusal_reason(), server_state(request)) else {
        return;
    };
    let context = &state.context;
    let address = client_address(request, &context.config().server.trusted_proxies);
    state.metrics.count_refused_sign_in(reason.as_str());
    if context.refusals.record(context.now(), address, reason) {
        let client = address.map(tracing::field::display);
        let reason = reason.as_str();
        let detail = problem
            .internal_text()
            .map_or_else(|| problem.to_string(), str::to_owned);
        let event = EventKind::SignInRefused.as_str();
        tracing::warn!(target: SIGN_IN_LOG, event, reason, client, detail, "refused");
    }
}
