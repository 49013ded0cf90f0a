//! The page of the caller's own account: sessions, tokens and domains.

pub mod provider_sign_in;
pub mod revocations;
pub mod sign_in;

use a2a_registry_api::limits::DEFAULT_TOKEN_DAYS;
use a2a_registry_api::{
    Account, CreatedToken, DomainView, NewToken, SavedSearch, Session, Token, Waiting,
};
use a2a_registry_core::accounts::people::account_own;
use a2a_registry_core::accounts::tokens::{token_create, tokens_own};
use a2a_registry_core::context::Context;
use a2a_registry_core::domains::acts::domains_own;
use a2a_registry_core::error::AppError;
use a2a_registry_core::providers::Providers;
use a2a_registry_core::reviews::waiting::waiting;
use a2a_registry_core::text::{self, LINE};
use a2a_registry_domain::role::Scope;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::answer::Answer;
use crate::pages::accounts::revocations::session_of;
use crate::pages::accounts::sign_in::signed_out;
use crate::pages::domains::own::OwnDomainView;
use crate::pages::frame::Frame;
use crate::pages::{moment, page};
use crate::problems::problem::Problem;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, FormOf};
use crate::requests::visitor::{PageOf, Visitor};
use crate::review_feed::feed_since;
use crate::saved_searches::saved_search_list;
use crate::sessions::sessions_own;

/// Agents on the page, shared among the domains.
const AGENTS: usize = 60;

#[derive(Template)]
#[template(path = "account.html")]
pub(super) struct AccountPage {
    frame: Frame,
    now: Timestamp,
    account: Account,
    scopes: String,
    domains: Vec<OwnDomainView>,
    sessions: Vec<SessionLine>,
    tokens: Vec<Token>,
    new_token: NewTokenView,
    /// A new token with its secret, which is shown once.
    made: Option<(String, String)>,
    feed: Option<Timestamp>,
    /// The new address of the feed, which is shown once.
    pub(super) feed_made: Option<String>,
    searches: Vec<SavedSearch>,
    /// Empty if nothing is pending.
    waiting: String,
    problem: Option<String>,
}

struct SessionLine {
    session: Session,
    provider: Option<(String, String)>,
    is_this: bool,
}

struct NewTokenView {
    name: String,
    days: String,
    /// Each scope with whether it is selected.
    scopes: Vec<(&'static str, bool)>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct TokenForm {
    name: String,
    days: String,
    scope: Vec<Scope>,
}

impl FormFields for TokenForm {}

pub(crate) async fn show(visitor: PageOf<Read>) -> Answer {
    let found = AccountPage::load(&visitor.context, &visitor).await?;
    Ok(page(StatusCode::OK, &found))
}

/// Makes a token and shows its secret; an error is shown above the form, which keeps its input.
pub(crate) async fn token_make(form: FormOf<Read, TokenForm>) -> Answer {
    let days = form.fields.days.trim();
    let new = NewToken {
        name: form.fields.name.trim().to_owned(),
        scopes: (!form.fields.scope.is_empty()).then(|| form.fields.scope.clone()),
        expires_in_days: (!days.is_empty()).then(|| days.parse().unwrap_or(0)),
        ..NewToken::default()
    };
    let made = token_create(&form.context, &form.visitor.caller, &new).await;
    let mut found = AccountPage::load(&form.context, &form.visitor).await?;
    let status = match made {
        Ok(CreatedToken { token, secret }) => {
            found.made = Some((text::line(&token.name, LINE), secret));
            StatusCode::CREATED
        }
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log(&problem);
            found.problem = Some(text::line(&problem.to_string(), text::BLOCK));
            found.new_token.keep(form.fields);
            problem.kind().status
        }
    };
    Ok(page(status, &found))
}

impl AccountPage {
    pub(super) async fn load(context: &Context, visitor: &Visitor) -> Result<Self, Problem> {
        let by = visitor.caller.account().map_err(|_| signed_out())?;
        let caller = &visitor.caller;
        let (account, sessions, tokens, domains, feed, saved, waiting) = futures::try_join!(
            account_own(context, by),
            sessions_own(context, by),
            tokens_own(context, by),
            domains_own(context, caller),
            feed_since(context, caller),
            saved_search_list(context, caller),
            waiting(context, caller),
        )
        .map_err(|error: AppError| Problem::from(error))?;
        let this = session_of(caller);
        let line = |session: Session| SessionLine {
            is_this: Some(session.id) == this,
            provider: session
                .issuer
                .as_deref()
                .map(|issuer| provider(issuer, &context.providers)),
            session,
        };
        Ok(Self {
            frame: Frame::of(context.config(), "account", visitor),
            now: context.now(),
            account,
            scopes: by.scopes.to_string().replace(',', ", "),
            new_token: NewTokenView {
                name: String::new(),
                days: DEFAULT_TOKEN_DAYS.to_string(),
                scopes: by.scopes.iter().map(|one| (one.as_str(), true)).collect(),
            },
            domains: own_domains(context, visitor, &domains).await,
            sessions: sessions.into_iter().map(line).collect(),
            tokens,
            made: None,
            feed,
            feed_made: None,
            searches: saved.searches,
            waiting: what_waits(&waiting),
            problem: None,
        })
    }
}

fn provider(issuer: &str, providers: &Providers) -> (String, String) {
    let provider = providers.by_issuer(issuer);
    let title = provider.map_or(issuer, |provider| provider.title());
    (text::line(title, LINE), text::line(issuer, LINE))
}

fn what_waits(waiting: &Waiting) -> String {
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    let parts = [
        counted(
            waiting.reviews.len(),
            "review to decide",
            "reviews to decide",
        ),
        counted(
            waiting.news.len(),
            "decision or comment on your agents",
            "decisions and comments on your agents",
        ),
        counted(waiting.domains.len(), "domain to prove", "domains to prove"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// The caller's domains with their first agents, few of each if there are many domains.
async fn own_domains(
    context: &Context,
    visitor: &Visitor,
    domains: &[DomainView],
) -> Vec<OwnDomainView> {
    let each = (AGENTS / domains.len().max(1)).max(1);
    let mut views = Vec::with_capacity(domains.len());
    for domain in domains {
        views.push(OwnDomainView::load(context, &visitor.caller, domain, each).await);
    }
    views
}

impl NewTokenView {
    fn keep(&mut self, form: TokenForm) {
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
            sessions: vec![SessionLine {
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
