//! Forms of the account page that revoke a token, a session or the feed. Each asks for confirmation first and lists
//! what will be lost.

use a2a_registry_core::accounts::tokens::{RevocableToken, load_revocable_token, token_revoke};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::text::{self, LINE};
use a2a_registry_core::visibility::caller::{Caller, Credential};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::accounts::AccountPage;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::{moment, render_page};
use crate::problems::problem::Problem;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::visitor::Visitor;
use crate::review_feed::{review_feed_created_at, review_feed_renew, review_feed_revoke};
use crate::sessions::{session_revoke, session_show};

#[derive(Deserialize)]
pub(crate) struct RevokeForm {
    id: Uuid,
    #[serde(default)]
    confirm: Confirmation,
}

impl FormFields for RevokeForm {}

/// Feed form without an id, because an account has only one feed.
#[derive(Deserialize)]
pub(crate) struct FeedConfirmationForm {
    #[serde(default)]
    confirm: Confirmation,
}

impl FormFields for FeedConfirmationForm {}

pub(crate) async fn submit_token_revocation(
    form: PermittedForm<Read, RevokeForm>,
) -> HandlerResult {
    let (caller, id) = (&form.visitor.caller, form.fields.id);
    if form.fields.confirm.is_given() {
        token_revoke(&form.context, caller, id).await?;
        return Ok(redirect_to_account());
    }
    let revocable = load_revocable_token(&form.context, caller, id).await?;
    let name = text::single_line(&revocable.token.name, LINE);
    let confirmation = ConfirmPage {
        title: format!("Revoke the token {name}"),
        losses: token_revocation_effects(&form.context, caller, &revocable),
        action: "/account/tokens/revoke".to_owned(),
        fields: vec![("id", id.to_string())],
        button: "Revoke the token",
        ..account_confirmation_page(&form.context, &form.visitor)
    };
    Ok(render_page(StatusCode::OK, &confirmation))
}

fn token_revocation_effects(
    context: &AppContext,
    caller: &Caller,
    revocable: &RevocableToken,
) -> Vec<String> {
    let token = &revocable.token;
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let last_use = match token.last_used_at {
        Some(at) => {
            let used = moment::last_used_text(&at, &context.now());
            format!("It was last used {used}.")
        }
        None => "It has not been used yet.".to_owned(),
    };
    // The prefix of a token that an operator chose is not stored.
    let prefix = match token.prefix.as_str() {
        "" => String::new(),
        prefix => format!(" ({prefix}…)"),
    };
    let revoked = format!(
        "The token {}{prefix} of the account {}, with the scopes {}: requests with it will be rejected. Its secret \
         cannot be restored. {last_use}",
        token.name,
        token.account,
        scopes.join(", ")
    );
    let sessions = match revocable.sessions.len() {
        0 => None,
        1 => Some("The session that was started with it.".to_owned()),
        count => Some(format!("The {count} sessions that were started with it.")),
    };
    let is_own = |id: &Uuid| Some(*id) == caller_session_id(caller);
    let signs_out = revocable.sessions.iter().any(is_own);
    let own = signs_out.then(|| OWN_SESSION_LOSS.to_owned());
    let losses = [Some(revoked), sessions, own].into_iter().flatten();
    losses
        .map(|loss| text::single_line(&loss, text::BLOCK))
        .collect()
}

const OWN_SESSION_LOSS: &str = "Your own session on this page: you will be signed out.";

pub(crate) async fn submit_session_revocation(
    form: PermittedForm<Read, RevokeForm>,
) -> HandlerResult {
    let (caller, id) = (&form.visitor.caller, form.fields.id);
    if form.fields.confirm.is_given() {
        session_revoke(&form.context, caller, id).await?;
        return Ok(redirect_to_account());
    }
    let session = session_show(&form.context, caller, id).await?;
    let began = moment::format_relative_time(&session.created_at, &form.context.now());
    let browser = text::single_line(&session.browser, LINE);
    let mut losses = vec![text::single_line(
        &format!(
            "The session {browser} of the account {}, started {began}: its user will be signed out.",
            session.account
        ),
        text::BLOCK,
    )];
    if Some(id) == caller_session_id(caller) {
        losses.push(OWN_SESSION_LOSS.to_owned());
    }
    let confirmation = ConfirmPage {
        title: format!("Revoke the session {browser}"),
        losses,
        action: "/account/sessions/revoke".to_owned(),
        fields: vec![("id", id.to_string())],
        button: "Revoke the session",
        ..account_confirmation_page(&form.context, &form.visitor)
    };
    Ok(render_page(StatusCode::OK, &confirmation))
}

/// Creates a new feed URL and shows it. Replacing an existing URL requires confirmation.
pub(crate) async fn submit_feed_renewal(
    form: PermittedForm<Read, FeedConfirmationForm>,
) -> HandlerResult {
    let title = "Create a new feed URL";
    if let Some(confirmation) =
        feed_confirmation_page(&form.context, &form, title, "/account/feed").await?
    {
        return Ok(confirmation);
    }
    let feed = review_feed_renew(&form.context, &form.visitor.caller).await?;
    let mut view = AccountPage::load(&form.context, &form.visitor).await?;
    view.feed_made = Some(feed.url);
    Ok(render_page(StatusCode::CREATED, &view))
}

pub(crate) async fn submit_feed_end(
    form: PermittedForm<Read, FeedConfirmationForm>,
) -> HandlerResult {
    let title = "End the feed";
    if let Some(confirmation) =
        feed_confirmation_page(&form.context, &form, title, "/account/feed/end").await?
    {
        return Ok(confirmation);
    }
    review_feed_revoke(&form.context, &form.visitor.caller).await?;
    Ok(redirect_to_account())
}

/// Confirmation page before the feed loses its URL; `None` if confirmed or if there is no URL.
async fn feed_confirmation_page(
    context: &AppContext,
    form: &PermittedForm<Read, FeedConfirmationForm>,
    title: &'static str,
    action: &str,
) -> Result<Option<HttpResponse>, Problem> {
    if form.fields.confirm.is_given() {
        return Ok(None);
    }
    let since = review_feed_created_at(context, &form.visitor.caller).await?;
    Ok(since.map(|since| {
        let loss = format!(
            "The feed URL created on {} will stop working in every feed reader that uses it, and cannot be restored.",
            moment::format_to_minute(&since)
        );
        let confirmation = ConfirmPage {
            title: title.to_owned(),
            losses: vec![loss],
            action: action.to_owned(),
            button: title,
            ..account_confirmation_page(context, &form.visitor)
        };
        render_page(StatusCode::OK, &confirmation)
    }))
}

pub(super) fn caller_session_id(caller: &Caller) -> Option<Uuid> {
    match caller.account.as_ref()?.credential {
        Credential::Session(id) => Some(id),
        Credential::Token(_) | Credential::AccessToken(_) | Credential::Feed => None,
    }
}

/// A confirmation page that returns to the account; the caller fills in the action.
fn account_confirmation_page(context: &AppContext, visitor: &Visitor) -> ConfirmPage {
    ConfirmPage {
        frame: Frame::for_visitor(&context.config(), "account", visitor),
        title: String::new(),
        losses: Vec::new(),
        action: String::new(),
        fields: Vec::new(),
        button: "",
        back: "/account".to_owned(),
    }
}

fn redirect_to_account() -> HttpResponse {
    crate::pages::see_other("/account")
}
