//! The forms of the account page that end something: a token, a session, the feed. Each asks for confirmation first,
//! and names what ends.

use a2a_registry_core::accounts::tokens::{RevocableToken, revocable_token, token_revoke};
use a2a_registry_core::context::Context;
use a2a_registry_core::text::{self, LINE};
use a2a_registry_core::visibility::caller::{Caller, Credential};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::answer::Answer;
use crate::pages::accounts::AccountPage;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::{moment, page};
use crate::problems::problem::Problem;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, FormOf};
use crate::requests::visitor::Visitor;
use crate::review_feed::{feed_renew, feed_revoke, feed_since};
use crate::sessions::{session_revoke, session_show};

#[derive(Deserialize)]
pub(crate) struct RevokeForm {
    id: Uuid,
    #[serde(default)]
    confirm: Confirmation,
}

impl FormFields for RevokeForm {}

/// An account has one feed, so the form needs no id.
#[derive(Deserialize)]
pub(crate) struct FeedForm {
    #[serde(default)]
    confirm: Confirmation,
}

impl FormFields for FeedForm {}

pub(crate) async fn token_end(form: FormOf<Read, RevokeForm>) -> Answer {
    let (caller, id) = (&form.visitor.caller, form.fields.id);
    if form.fields.confirm.is_given() {
        token_revoke(&form.context, caller, id).await?;
        return Ok(back());
    }
    let found = revocable_token(&form.context, caller, id).await?;
    let name = text::line(&found.token.name, LINE);
    let confirmation = ConfirmPage {
        title: format!("Revoke the token {name}"),
        losses: token_losses(&form.context, caller, &found),
        action: "/account/tokens/revoke".to_owned(),
        fields: vec![("id", id.to_string())],
        button: "Revoke the token",
        ..account_confirmation(&form.context, &form.visitor)
    };
    Ok(page(StatusCode::OK, &confirmation))
}

fn token_losses(context: &Context, caller: &Caller, found: &RevocableToken) -> Vec<String> {
    let token = &found.token;
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let used = match token.last_used_at {
        Some(at) => {
            let used = moment::hour_of_use(&at, &context.now());
            format!("It was last used {used}.")
        }
        None => "It was not used yet.".to_owned(),
    };
    // The beginning of a token that an operator chose is not stored.
    let prefix = match token.prefix.as_str() {
        "" => String::new(),
        prefix => format!(" ({prefix}…)"),
    };
    let revoked = format!(
        "The token {}{prefix} of the account {}, with the scopes {}: whoever uses it is refused. Its secret cannot be restored. {used}",
        token.name,
        token.account,
        scopes.join(", ")
    );
    let sessions = match found.sessions.len() {
        0 => None,
        1 => Some("The session that was begun with it.".to_owned()),
        count => Some(format!("The {count} sessions that were begun with it.")),
    };
    let is_own = |id: &Uuid| Some(*id) == session_of(caller);
    let signs_out = found.sessions.iter().any(is_own);
    let own = signs_out.then(|| OWN_SESSION.to_owned());
    let losses = [Some(revoked), sessions, own].into_iter().flatten();
    losses.map(|loss| text::line(&loss, text::BLOCK)).collect()
}

const OWN_SESSION: &str = "Your own session on this page: you will be signed out.";

pub(crate) async fn session_end(form: FormOf<Read, RevokeForm>) -> Answer {
    let (caller, id) = (&form.visitor.caller, form.fields.id);
    if form.fields.confirm.is_given() {
        session_revoke(&form.context, caller, id).await?;
        return Ok(back());
    }
    let session = session_show(&form.context, caller, id).await?;
    let began = moment::distance(&session.created_at, &form.context.now());
    let browser = text::line(&session.browser, LINE);
    let mut losses = vec![text::line(
        &format!(
            "The session {browser} of the account {}, begun {began}: whoever uses it is signed out.",
            session.account
        ),
        text::BLOCK,
    )];
    if Some(id) == session_of(caller) {
        losses.push(OWN_SESSION.to_owned());
    }
    let confirmation = ConfirmPage {
        title: format!("Revoke the session {browser}"),
        losses,
        action: "/account/sessions/revoke".to_owned(),
        fields: vec![("id", id.to_string())],
        button: "Revoke the session",
        ..account_confirmation(&form.context, &form.visitor)
    };
    Ok(page(StatusCode::OK, &confirmation))
}

/// Gives the feed a new address and shows it; after a confirmation if that replaces an address.
pub(crate) async fn feed_renewed(form: FormOf<Read, FeedForm>) -> Answer {
    let title = "Give the feed a new address";
    if let Some(confirmation) =
        feed_confirmation(&form.context, &form, title, "/account/feed").await?
    {
        return Ok(confirmation);
    }
    let made = feed_renew(&form.context, &form.visitor.caller).await?;
    let mut found = AccountPage::load(&form.context, &form.visitor).await?;
    found.feed_made = Some(made.url);
    Ok(page(StatusCode::CREATED, &found))
}

pub(crate) async fn feed_ended(form: FormOf<Read, FeedForm>) -> Answer {
    let title = "End the feed";
    if let Some(confirmation) =
        feed_confirmation(&form.context, &form, title, "/account/feed/end").await?
    {
        return Ok(confirmation);
    }
    feed_revoke(&form.context, &form.visitor.caller).await?;
    Ok(back())
}

/// The page that asks before the feed loses its address; `None` once confirmed, and if there is no address.
async fn feed_confirmation(
    context: &Context,
    form: &FormOf<Read, FeedForm>,
    title: &'static str,
    action: &str,
) -> Result<Option<HttpResponse>, Problem> {
    if form.fields.confirm.is_given() {
        return Ok(None);
    }
    let since = feed_since(context, &form.visitor.caller).await?;
    Ok(since.map(|since| {
        let loss = format!(
            "The address that the feed has had since {}: readers that know it get nothing any more. It cannot be restored.",
            moment::minute(&since)
        );
        let confirmation = ConfirmPage {
            title: title.to_owned(),
            losses: vec![loss],
            action: action.to_owned(),
            button: title,
            ..account_confirmation(context, &form.visitor)
        };
        page(StatusCode::OK, &confirmation)
    }))
}

pub(super) fn session_of(caller: &Caller) -> Option<Uuid> {
    match caller.account.as_ref()?.credential {
        Credential::Session(id) => Some(id),
        Credential::Token(_) | Credential::AccessToken(_) | Credential::Feed => None,
    }
}

/// A confirmation page that leads back to the account; what is to be confirmed is left empty.
fn account_confirmation(context: &Context, visitor: &Visitor) -> ConfirmPage {
    ConfirmPage {
        frame: Frame::of(context.config(), "account", visitor),
        title: String::new(),
        losses: Vec::new(),
        action: String::new(),
        fields: Vec::new(),
        button: "",
        back: "/account".to_owned(),
    }
}

fn back() -> HttpResponse {
    crate::pages::see_other("/account")
}
