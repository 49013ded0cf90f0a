//! Sign-in links: addresses that sign in once with a token, without showing it. Opening one asks for a confirmation,
//! so that a program that previews links uses none up.

use a2a_registry_core::accounts::authentication::require_unsuspended_account;
use a2a_registry_core::accounts::one_time_codes::{OneTimeCode, issue_code, open_code, use_code};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, CredentialRefusal, Result};
use a2a_registry_store::entity::{account, token};
use a2a_registry_store::{Executor, WriteTransaction, accounts};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const LINK_PURPOSE: &str = "a2a-registry sign-in link";
/// Path of the page that a link leads to. Its query is never logged.
pub const SIGN_IN_LINK_PATH: &str = "/sign-in-link";

#[derive(Debug, Serialize, Deserialize)]
struct LinkContent {
    token: Uuid,
}

/// A link that has not expired.
#[derive(Debug)]
pub struct SignInLink(OneTimeCode<LinkContent>);

/// Issues a link for a token, as path and query.
pub fn issue_sign_in_link(context: &AppContext, token: Uuid) -> Result<String> {
    let code = issue_code(context, LINK_PURPOSE, LinkContent { token })?;
    Ok(format!("{SIGN_IN_LINK_PATH}?code={code}"))
}

impl SignInLink {
    pub(crate) fn open(context: &AppContext, code: &str) -> Result<Self> {
        let opened = open_code(context, LINK_PURPOSE, code);
        opened.map(Self).ok_or_else(ended_link_error)
    }

    /// The account that the link signs in, and its token, unless that has ended or is suspended.
    pub(crate) async fn load_account(
        &self,
        context: &AppContext,
        db: &impl Executor,
    ) -> Result<(account::Model, token::Model)> {
        let now = context.now().0;
        let token = accounts::token_by_id(db, self.0.content.token).await?;
        let token = token.filter(|token| token.expires_at.is_none_or(|end| end > now));
        let token = token.ok_or_else(ended_link_error)?;
        let account = accounts::accounts_by_ids(db, &[token.account_id]).await?;
        let mut account = account.into_iter();
        let account = account.find(account::Model::is_account_active);
        let account = account.ok_or_else(ended_link_error)?;
        require_unsuspended_account(context, &account)?;
        Ok((account, token))
    }

    /// Uses the link up, in the transaction that creates its session. The caller must have locked the accounts.
    pub(super) async fn record_use(&self, write: &WriteTransaction, now: i64) -> Result<()> {
        match use_code(write, &self.0, now).await? {
            true => Ok(()),
            false => Err(ended_link_error()),
        }
    }
}

fn ended_link_error() -> AppError {
    AppError::unauthenticated(
        "This sign-in link is unknown, was used, or is older than ten minutes. Ask for a new one, or sign in with a \
         token.",
    )
    .with_refusal(CredentialRefusal::Attempt)
}
