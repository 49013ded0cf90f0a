//! One account: its roles and groups, a first token for it, and its end.

use a2a_registry_api::limits::DEFAULT_TOKEN_DAYS;
use a2a_registry_api::{Account, AccountPatch, NewToken};
use a2a_registry_core::accounts::account_operations::{account_patch, account_show};
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::entity_tag::RenderedJson;
use a2a_registry_core::error::AppError;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::admin::nonempty_lines;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::problems::problem::Problem;
use crate::requests::auth::{Administer, ReadAccounts};
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::path_parameters::AccountRef;
use crate::requests::visitor::{PermittedVisitor, Visitor};

/// Origin of the groups whose members admins set.
const ADMIN_ORIGIN: &str = "admin";

#[derive(Template)]
#[template(path = "admin_account.html")]
struct OneAccountPage {
    frame: Frame,
    now: Timestamp,
    account: Account,
    /// Entity tag of the account as shown, so that a change made meanwhile is not undone.
    seen: String,
    /// Each role with whether the account has it.
    roles: Vec<(&'static str, bool)>,
    groups: String,
    /// A new token, whose secret is shown once.
    made: Option<(String, String)>,
    problem: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AccountForm {
    act: String,
    seen: String,
    role: Vec<Role>,
    /// Names of groups that admins set, one in each line.
    groups: String,
    /// Purpose of a new token.
    name: String,
    days: String,
    confirm: Confirmation,
}

/// Size limits of the form: 100 groups, each character of a name escaped.
impl FormFields for AccountForm {
    const MAX_BYTES: usize = 64 * 1024;
}

pub(crate) async fn show_account(
    visitor: PermittedVisitor<ReadAccounts>,
    AccountRef(account): AccountRef,
) -> HandlerResult {
    let account = account_show(&visitor.context, &visitor.caller, &account).await?;
    let page = OneAccountPage::new(&visitor.context, &visitor, account);
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Changes the account or makes a token for it. An account is disabled after a confirmation only.
pub(crate) async fn submit_account_change(
    AccountRef(account): AccountRef,
    form: PermittedForm<Administer, AccountForm>,
) -> HandlerResult {
    let (context, visitor, fields) = (&form.context, &form.visitor, &form.fields);
    let account = account_show(context, &visitor.caller, &account).await?;
    if fields.act == "disable" && !fields.confirm.is_given() {
        let frame = Frame::for_visitor(&context.config(), "admin", visitor);
        let page = account_end_page(frame, &account);
        return Ok(crate::pages::render_page(StatusCode::OK, &page));
    }
    let url = format!("/admin/accounts/{}", account.id);
    let mut page = OneAccountPage::new(context, visitor, account);
    let changed = run_account_change(context, &visitor.caller, &page.account, fields).await;
    let status = match changed {
        Ok(None) => return Ok(crate::pages::see_other(&url)),
        Ok(made) => {
            page.made = made;
            StatusCode::CREATED
        }
        Err(problem) => {
            crate::pages::log_problem(&problem);
            page.problem = Some(text::single_line(&problem.to_string(), BLOCK));
            problem.kind().status
        }
    };
    Ok(crate::pages::render_page(status, &page))
}

/// Makes the change; returns the name and the secret of a new token.
async fn run_account_change(
    context: &AppContext,
    caller: &Caller,
    account: &Account,
    form: &AccountForm,
) -> Result<Option<(String, String)>, Problem> {
    let (mut patch, mut if_match) = (AccountPatch::default(), IfMatch::default());
    match form.act.as_str() {
        "token" => {
            let new = NewToken {
                account: account.name.clone(),
                name: form.name.trim().to_owned(),
                // An invalid number is rejected like 0.
                expires_in_days: Some(form.days.trim().parse().unwrap_or(0)),
                ..NewToken::default()
            };
            let created = token_create(context, caller, &new).await?;
            let name = text::single_line(&created.token.name, LINE);
            return Ok(Some((name, created.secret)));
        }
        "change" => {
            patch.roles = Some(form.role.clone());
            patch.groups = Some(nonempty_lines(&form.groups));
            if_match = IfMatch(Some(form.seen.clone()));
        }
        "disable" => patch.disabled = Some(true),
        "enable" => patch.disabled = Some(false),
        _ => return Err(AppError::invalid("/act", "This form has no valid action.").into()),
    }
    let id = account.id.to_string();
    account_patch(context, caller, &id, &patch, &if_match).await?;
    Ok(None)
}

fn account_end_page(frame: Frame, account: &Account) -> ConfirmPage {
    let name = text::single_line(&account.name, LINE);
    let url = format!("/admin/accounts/{}", account.id);
    ConfirmPage {
        frame,
        title: format!("Disable the account {name}"),
        losses: vec![
            "Its tokens, sessions and feed end at once, and enabling it again restores none of them."
                .to_owned(),
            "Waivers that it has granted end, and its approvals of open reviews no longer count.".to_owned(),
            "Its domains and agents stay; name another owner or sponsor for them.".to_owned(),
        ],
        action: url.clone(),
        fields: vec![("act", "disable".to_owned())],
        button: "Disable the account",
        back: url,
    }
}

impl OneAccountPage {
    fn new(context: &AppContext, visitor: &Visitor, account: Account) -> Self {
        let has = |role: Role| account.roles.iter().any(|one| *one == role);
        let roles = Role::ALL.iter().map(|role| (role.as_str(), has(*role)));
        let own_groups = account
            .groups
            .iter()
            .filter(|group| group.origin == ADMIN_ORIGIN);
        let groups: Vec<&str> = own_groups.map(|group| group.name.as_str()).collect();
        Self {
            frame: Frame::for_visitor(&context.config(), "admin", visitor),
            now: context.now(),
            seen: RenderedJson::render(&account).map_or_else(|_| String::new(), |one| one.tag),
            roles: roles.collect(),
            // Uncut: what is missing here would be removed.
            groups: text::multiline_text(&groups.join("\n"), usize::MAX),
            account,
            made: None,
            problem: None,
        }
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
        assert_harmless(|text| OneAccountPage {
            frame: admin_frame("admin"),
            now: NOW,
            account: read(account(text)),
            seen: String::new(),
            roles: vec![("publisher", true)],
            groups: text::multiline_text(text, BLOCK),
            made: None,
            problem: None,
        });
        assert_harmless(|text| account_end_page(admin_frame("admin"), &read(account(text))));
    }
}
