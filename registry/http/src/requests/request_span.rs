//! The caller in the span of a request, which all log lines of the request carry.

use a2a_registry_core::visibility::caller::{Caller, Credential};
use actix_web::{HttpMessage as _, HttpRequest};
use tracing::Span;
use tracing::field::display;

/// Marks a request whose caller is in its span: a request is authenticated again once its body has arrived.
struct RecordedCaller;

/// Adds the account and the id of its credential to the span of the request, which must be the current one. The
/// secret of the credential is never recorded.
pub(crate) fn record_caller(request: &HttpRequest, caller: &Caller) {
    let Some(account) = &caller.account else {
        return;
    };
    if request.extensions().contains::<RecordedCaller>() {
        return;
    }
    request.extensions_mut().insert(RecordedCaller);
    let span = Span::current();
    span.record("actor", account.name.as_str());
    match &account.credential {
        Credential::Token(id) => span.record("token", display(id)),
        Credential::Session(id) => span.record("session", display(id)),
        Credential::AccessToken(issuer) => span.record("issuer", issuer.as_str()),
        Credential::Feed => &span,
    };
}
