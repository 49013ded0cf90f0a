//! The page of the link in mails, on which their reader confirms or ends them without signing in. The link is the
//! credential of its forms, so they need no other, and their bodies are not read.

use a2a_registry_core::context::AppContext;
use a2a_registry_core::hooks::mail_links::{mail_link_confirm, mail_link_end, mail_link_state};
use actix_web::http::StatusCode;
use actix_web::web;
use askama::Template;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::render_page;
use crate::requests::path_parameters::{HookId, MailCode};

#[derive(Template)]
#[template(path = "mail_link.html")]
struct MailLinkPage {
    frame: Frame,
    /// The state of the hook.
    state: String,
    link: String,
}

pub(crate) async fn show_mail_link(
    context: web::Data<AppContext>,
    hook: HookId,
    code: MailCode,
) -> HandlerResult {
    render_mail_link(&context, hook.0, &code.0).await
}

pub(crate) async fn confirm_mails(
    context: web::Data<AppContext>,
    hook: HookId,
    code: MailCode,
) -> HandlerResult {
    mail_link_confirm(&context, hook.0, &code.0).await?;
    render_mail_link(&context, hook.0, &code.0).await
}

pub(crate) async fn end_mails(
    context: web::Data<AppContext>,
    hook: HookId,
    code: MailCode,
) -> HandlerResult {
    mail_link_end(&context, hook.0, &code.0).await?;
    render_mail_link(&context, hook.0, &code.0).await
}

async fn render_mail_link(context: &AppContext, hook: Uuid, code: &str) -> HandlerResult {
    let page = MailLinkPage {
        state: mail_link_state(context, hook, code).await?,
        frame: Frame::new(&context.config(), "mail"),
        // The code is the one of the hook here, and has letters, digits, `-` and `_` only.
        link: format!("/mail/{hook}/{code}"),
    };
    Ok(render_page(StatusCode::OK, &page))
}
