//! Account page of the caller: sessions, tokens and domains.

pub mod hooks;
pub mod login;
pub mod mail_links;
pub mod provider_sign_in;
pub mod revocations;
pub mod sign_in;
pub mod sign_in_link;

use a2a_registry_api::limits::DEFAULT_TOKEN_DAYS;
use a2a_registry_api::{
    Account, CreatedToken, DomainView, NewToken, SavedSearch, Session, Token, Waiting,
};
use a2a_registry_core::accounts::account_operations::own_account;
use a2a_registry_core::accounts::tokens::{own_tokens, token_create};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::actions::load_own_domains;
use a2a_registry_core::error::AppError;
use a2a_registry_core::providers::IdentityProviders;
use a2a_registry_core::reviews::inbox::load_inbox;
use a2a_registry_core::text::{self, LINE};
use a2a_registry_domain::role::Scope;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::accounts::revocations::caller_session_id;
use crate::pages::accounts::sign_in::sign_in_required_problem;
use crate::pages::domains::my_domains::MyDomainView;
use crate::pages::frame::Frame;
use crate::pages::{moment, render_page};
use crate::problems::problem::Problem;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::visitor::{PermittedVisitor, Visitor};
use crate::review_feed::review_feed_created_at;
use crate::saved_searches::saved_search_list;
use crate::sessions::own_sessions;

/// Maximum number of agents on the page, shared by all domains.
const MAX_AGENTS: usize = 60;

#[derive(Template)]
#[template(path = "account.html")]
pub(super) struct AccountPage {
    frame: Frame,
    now: Timestamp,
    account: Account,
    scopes: String,
    domains: Vec<MyDomainView>,
    sessions: Vec<SessionView>,
    tokens: Vec<Token>,
    new_token: NewTokenView,
    /// A new token and its secret, which is shown once.
    made: Option<(String, String)>,
    feed: Option<Timestamp>,
    /// New URL of the feed, which is shown once.
    pub(super) feed_made: Option<String>,
    searches: Vec<SavedSearch>,
    /// Summary of the inbox; empty if nothing is pending.
    waiting: String,
    problem: Option<String>,
}

struct SessionView {
    session: Session,
    provider: Option<(String, String)>,
    is_this: bool,
}

struct NewTokenView {
    name: String,
    days: String,
    /// Scopes, each with whether it is selected.
    scopes: Vec<(&'static str, bool)>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct NewTokenForm {
    name: String,
    days: String,
    scope: Vec<Scope>,
}

impl FormFields for NewTokenForm {}

pub(crate) async fn account_page(visitor: PermittedVisitor<Read>) -> HandlerResult {
    let view = AccountPage::load(&visitor.context, &visitor).await?;
    Ok(render_page(StatusCode::OK, &view))
}

/// Creates a token and shows its secret. An error is shown above the form, which keeps its input.
pub(crate) async fn create_token_from_form(
    form: PermittedForm<Read, NewTokenForm>,
) -> HandlerResult {
    let days = form.fields.days.trim();
    let new = NewToken {
        name: form.fields.name.trim().to_owned(),
        // Scopes that are left out mean all of them in the API; in a form they were not chosen, which is refused.
        scopes: Some(form.fields.scope.clone()),
        expires_in_days: (!days.is_empty()).then(|| days.parse().unwrap_or(0)),
        ..NewToken::default()
    };
    let created = token_create(&form.context, &form.visitor.caller, &new).await;
    let mut view = AccountPage::load(&form.context, &form.visitor).await?;
    let status = match created {
        Ok(CreatedToken { token, secret }) => {
            view.made = Some((text::single_line(&token.name, LINE), secret));
            StatusCode::CREATED
        }
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log_problem(&problem);
            view.problem = Some(text::single_line(&problem.to_string(), text::BLOCK));
            view.new_token.restore_input(form.fields);
            problem.kind().status
        }
    };
    Ok(render_page(status, &view))
}

impl AccountPage {
    pub(super) async fn load(context: &AppContext, visitor: &Visitor) -> Result<Self, Problem> {
        let actor = visitor
            .caller
            .require_account()
            .map_err(|_| sign_in_required_problem())?;
        let caller = &visitor.caller;
        let (account, sessions, tokens, domains, feed, saved, inbox) = futures::try_join!(
            own_account(context, actor),
            own_sessions(context, actor),
            own_tokens(context, actor),
            load_own_domains(context, caller),
            review_feed_created_at(context, caller),
            saved_search_list(context, caller),
            load_inbox(context, caller),
        )
        .map_err(|error: AppError| Problem::from(error))?;
        let current_session = caller_session_id(caller);
        let session_view = |session: Session| SessionView {
            is_this: Some(session.id) == current_session,
            provider: session
                .issuer
                .as_deref()
                .map(|issuer| provider_title_and_issuer(issuer, &context.providers)),
            session,
        };
        Ok(Self {
            frame: Frame::for_visitor(&context.config(), "account", visitor),
            now: context.now(),
            account,
            scopes: actor.scopes.to_string().replace(',', ", "),
            new_token: NewTokenView {
                name: String::new(),
                days: DEFAULT_TOKEN_DAYS.to_string(),
                scopes: actor
                    .scopes
                    .iter()
                    .map(|one| (one.as_str(), false))
                    .collect(),
            },
            domains: load_caller_domains(context, visitor, &domains).await,
            sessions: sessions.into_iter().map(session_view).collect(),
            tokens,
            made: None,
            feed,
            feed_made: None,
            searches: saved.searches,
            waiting: summarize_inbox(&inbox),
            problem: None,
        })
    }
}

fn provider_title_and_issuer(issuer: &str, providers: &IdentityProviders) -> (String, String) {
    let provider = providers.by_issuer(issuer);
    let title = provider.map_or(issuer, |provider| provider.title());
    (
        text::single_line(title, LINE),
        text::single_line(issuer, LINE),
    )
}

fn summarize_inbox(inbox: &Waiting) -> String {
    let count_phrase = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    let parts = [
        count_phrase(inbox.reviews.len(), "review to decide", "reviews to decide"),
        count_phrase(
            inbox.news.len(),
            "decision or comment on your agents",
            "decisions and comments on your agents",
        ),
        count_phrase(inbox.domains.len(), "domain to prove", "domains to prove"),
        count_phrase(
            inbox.failing_hooks.len(),
            "hook that fails",
            "hooks that fail",
        ),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// The caller's domains with their first agents; fewer agents per domain if there are many domains.
async fn load_caller_domains(
    context: &AppContext,
    visitor: &Visitor,
    domains: &[DomainView],
) -> Vec<MyDomainView> {
    let agents_per_domain = (MAX_AGENTS / domains.len().max(1)).max(1);
    let mut views = Vec::with_capacity(domains.len());
    for domain in domains {
        views.push(MyDomainView::load(context, &visitor.caller, domain, agents_per_domain).await);
    }
    views
}

impl NewTokenView {
    fn restore_input(&mut self, form: NewTokenForm) {
        for (name, is_chosen) in &mut self.scopes {
            *is_chosen = form.scope.iter().any(|scope| scope.as_str() == *name);
        }
        self.name = form.name;
        self.days = form.days;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{account, admin_frame, read, session, token};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| AccountPage {
            frame: admin_frame("account"),
            now: NOW,
            account: read(account(text)),
            scopes: "read".to_owned(),
            domains: Vec::new(),
            sessions: vec![SessionView {
                session: read(session(text)),
                provider: None,
                is_this: true,
            }],
            tokens: vec![read(token(text))],
            new_token: NewTokenView {
                name: String::new(),
                days: "30".to_owned(),
                scopes: vec![("read", true)],
            },
            made: None,
            feed: Some(NOW),
            feed_made: None,
            searches: Vec::new(),
            waiting: String::new(),
            problem: None,
        });
    }
}
