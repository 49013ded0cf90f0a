//! Accounts: the list, and the form for a new one.

use a2a_registry_api::{Account, NewAccount};
use a2a_registry_core::accounts::account_operations::{account_create, account_list};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::Result;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::admin::{next_page_url, nonempty_lines};
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::problems::problem::Problem;
use crate::requests::auth::{Administer, ReadAccounts};
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::query;
use crate::requests::visitor::{PermittedVisitor, Visitor};

#[derive(Template)]
#[template(path = "admin_accounts.html")]
struct AccountsPage {
    frame: Frame,
    now: Timestamp,
    accounts: Vec<Account>,
    next: Option<String>,
    problem: Option<String>,
    typed: NewAccountForm,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NewAccountForm {
    name: String,
    role: Vec<Role>,
    /// Names of groups, one in each line.
    groups: String,
}

impl FormFields for NewAccountForm {}

pub(crate) async fn show_accounts(
    visitor: PermittedVisitor<ReadAccounts>,
    request: HttpRequest,
) -> HandlerResult {
    let request: PageRequest = query::parse_query(request.query_string())?;
    let page = AccountsPage::load(&visitor.context, &visitor, &request).await?;
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Creates an account, and redirects to its page, where it gets a token. An error is shown above the form, which keeps
/// its input.
pub(crate) async fn submit_account(
    form: PermittedForm<Administer, NewAccountForm>,
) -> HandlerResult {
    let (context, visitor, fields) = (&form.context, &form.visitor, form.fields);
    let new = NewAccount {
        name: fields.name.trim().to_owned(),
        roles: fields.role.clone(),
        groups: nonempty_lines(&fields.groups),
    };
    let problem = match account_create(context, &visitor.caller, &new).await {
        Ok(account) => {
            let url = format!("/admin/accounts/{}", account.id);
            return Ok(crate::pages::see_other(&url));
        }
        Err(error) => Problem::from(error),
    };
    crate::pages::log_problem(&problem);
    let mut page = AccountsPage::load(context, visitor, &PageRequest::default()).await?;
    page.problem = Some(text::single_line(&problem.to_string(), BLOCK));
    page.typed = fields;
    Ok(crate::pages::render_page(problem.kind().status, &page))
}

impl AccountsPage {
    async fn load(context: &AppContext, visitor: &Visitor, page: &PageRequest) -> Result<Self> {
        let list = account_list(context, &visitor.caller, page).await?;
        Ok(Self {
            frame: Frame::for_visitor(&context.config(), "admin", visitor),
            now: context.now(),
            accounts: list.accounts,
            next: next_page_url("/admin/accounts", list.next_page_token.as_deref()),
            problem: None,
            typed: NewAccountForm::default(),
        })
    }

    fn role_names(account: &Account) -> String {
        let names: Vec<&str> = account.roles.iter().map(|role| role.as_str()).collect();
        text::single_line(&names.join(", "), LINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{account, admin_frame, read};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| AccountsPage {
            frame: admin_frame("admin"),
            now: NOW,
            accounts: vec![read(account(text))],
            next: None,
            problem: None,
            typed: NewAccountForm::default(),
        });
    }
}
