//! Layer that counts large responses per client address and rejects those beyond the limit. It is inside the
//! compression layer, which would hide the size of the buffers.

use std::sync::Arc;

use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;

use crate::limits::client_address::{client_address, client_network};
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::server_state::server_state;

/// Maximum size of responses that are not counted: a connection buffers about as much of any response, and connections
/// have their own limit.
pub const MAX_UNCOUNTED_BYTES: u64 = 64 * 1024;
/// Seconds after which a rejected request may be repeated.
const RETRY_AFTER_SECONDS: u32 = 5;

pub async fn limit_unread_bytes<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let response = next.call(request).await?;
    Ok(match response.response().body().size() {
        BodySize::Sized(bytes) if bytes > MAX_UNCOUNTED_BYTES => count_or_reject_response(response),
        _ => response.map_into_left_body(),
    })
}

fn count_or_reject_response<B: MessageBody + 'static>(
    response: ServiceResponse<B>,
) -> ServiceResponse<EitherBody<B>> {
    let request = response.request();
    let Ok(state) = server_state(request) else {
        return response.map_into_left_body();
    };
    let unread = Arc::clone(&state.unread_bytes);
    let trusted = &state.context.config().server.trusted_proxies;
    let Some(address) = client_address(request, trusted).map(client_network) else {
        return response.map_into_left_body();
    };
    let (request, response) = response.into_parts();
    let (response, body) = response.into_parts();
    let bytes = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        Err(body) => {
            return ServiceResponse::new(request, response.set_body(EitherBody::left(body)));
        }
    };
    match unread.admit(address, &bytes) {
        Some(body) => {
            let body = EitherBody::right(BoxBody::new(body));
            ServiceResponse::new(request, response.set_body(body))
        }
        None => {
            let problem = Problem::new(
                &problem_kinds::TOO_MANY_REQUESTS,
                "Your address has too many unread bytes of earlier responses. Read those first, then try again.",
            );
            let refusal =
                ServiceResponse::from_err(problem.with_retry_after(RETRY_AFTER_SECONDS), request);
            refusal.map_into_right_body()
        }
    }
}
