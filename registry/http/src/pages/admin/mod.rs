//! Pages for admins: the state of the registry, and whatever gives access to it.

pub mod account;
pub mod accounts;

use a2a_registry_api::{Group, GroupMembers, PeerList, Session, Token};
use a2a_registry_core::accounts::groups::{group_delete, group_list, group_put, group_show};
use a2a_registry_core::accounts::tokens::token_list;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::entity_tag::RenderedJson;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::federation::list_peers;
use a2a_registry_core::health::readiness::{Readiness, check_readiness};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::providers::ProviderStatus;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::{moment, stay_on_page};
use crate::problems::problem::Problem;
use crate::requests::auth::{Administer, ReadAccounts};
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::query;
use crate::requests::visitor::PermittedVisitor;
use crate::sessions::session_list;

/// Maximum number of members that a group's row names.
const MEMBERS: usize = 20;

#[derive(Template)]
#[template(path = "admin_status.html")]
struct StatusPage {
    frame: Frame,
    now: Timestamp,
    readiness: Readiness,
    providers: Vec<ProviderStatus>,
    peers: PeerList,
}

/// Tokens or sessions of all accounts, which an admin may revoke.
#[derive(Template)]
#[template(path = "admin_credentials.html")]
struct CredentialsPage {
    frame: Frame,
    now: Timestamp,
    here: &'static str,
    tokens: Vec<Token>,
    sessions: Vec<Session>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "admin_groups.html")]
struct GroupsPage {
    frame: Frame,
    groups: Vec<Group>,
    next: Option<String>,
    problem: Option<String>,
    typed: GroupForm,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GroupListParams {
    /// Group whose members the form shows; empty for a new one.
    edit: String,
    page_token: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GroupForm {
    name: String,
    /// Names of accounts, one in each line.
    members: String,
    /// Entity tag of the group whose members were shown; empty for a new one.
    seen: String,
    act: String,
    confirm: Confirmation,
}

/// Size limits of the form: the members of a group.
impl FormFields for GroupForm {
    const MAX_BYTES: usize = 256 * 1024;
}

/// Shows what readiness checks, identity providers and peers report.
pub(crate) async fn show_status(visitor: PermittedVisitor<ReadAccounts>) -> HandlerResult {
    let context = &visitor.context;
    let page = StatusPage {
        frame: Frame::for_visitor(&context.config(), "admin", &visitor),
        now: context.now(),
        readiness: check_readiness(context).await,
        providers: context.providers.statuses(),
        peers: list_peers(context).await?,
    };
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

pub(crate) async fn show_tokens(
    visitor: PermittedVisitor<Administer>,
    request: HttpRequest,
) -> HandlerResult {
    let page: PageRequest = query::parse_query(request.query_string())?;
    let list = token_list(&visitor.context, &visitor.caller, &page).await?;
    let page = CredentialsPage {
        frame: Frame::for_visitor(&visitor.context.config(), "admin", &visitor),
        now: visitor.context.now(),
        here: "tokens",
        tokens: list.tokens,
        sessions: Vec::new(),
        next: next_page_url("/admin/tokens", list.next_page_token.as_deref()),
    };
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

pub(crate) async fn show_sessions(
    visitor: PermittedVisitor<Administer>,
    request: HttpRequest,
) -> HandlerResult {
    let page: PageRequest = query::parse_query(request.query_string())?;
    let list = session_list(&visitor.context, &visitor.caller, &page).await?;
    let page = CredentialsPage {
        frame: Frame::for_visitor(&visitor.context.config(), "admin", &visitor),
        now: visitor.context.now(),
        here: "sessions",
        tokens: Vec::new(),
        sessions: list.sessions,
        next: next_page_url("/admin/sessions", list.next_page_token.as_deref()),
    };
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

pub(crate) async fn show_groups(
    visitor: PermittedVisitor<ReadAccounts>,
    request: HttpRequest,
) -> HandlerResult {
    let params: GroupListParams = query::parse_query(request.query_string())?;
    let (context, caller) = (&visitor.context, &visitor.caller);
    let page = PageRequest {
        page_size: None,
        page_token: params.page_token,
    };
    let list = group_list(context, caller, &page).await?;
    let typed = match params.edit.as_str() {
        "" => GroupForm::default(),
        name => GroupForm::from_group(&group_show(context, caller, name).await?)?,
    };
    let page = GroupsPage {
        frame: Frame::for_visitor(&context.config(), "admin", &visitor),
        groups: list.groups,
        next: next_page_url("/admin/groups", list.next_page_token.as_deref()),
        problem: None,
        typed,
    };
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Sets the members of a group, or deletes it after a confirmation. An error is shown above the form, which keeps its
/// input.
pub(crate) async fn submit_group(form: PermittedForm<Administer, GroupForm>) -> HandlerResult {
    if form.fields.act.is_empty() {
        return Ok(stay_on_page());
    }
    let (context, visitor, fields) = (&form.context, &form.visitor, form.fields);
    let (caller, name) = (&visitor.caller, fields.name.trim());
    let changed = match fields.act.as_str() {
        "delete" if !fields.confirm.is_given() => {
            let frame = Frame::for_visitor(&context.config(), "admin", visitor);
            let page = group_deletion_page(frame, name);
            return Ok(crate::pages::render_page(StatusCode::OK, &page));
        }
        "delete" => group_delete(context, caller, name, &IfMatch::default()).await,
        _ => set_group_from_form(context, caller, name, &fields).await,
    };
    let Err(error) = changed else {
        return Ok(crate::pages::see_other("/admin/groups"));
    };
    let problem = Problem::from(error);
    crate::pages::log_problem(&problem);
    let list = group_list(context, caller, &PageRequest::default()).await?;
    let page = GroupsPage {
        frame: Frame::for_visitor(&context.config(), "admin", visitor),
        groups: list.groups,
        next: next_page_url("/admin/groups", list.next_page_token.as_deref()),
        problem: Some(text::single_line(&problem.to_string(), BLOCK)),
        typed: fields,
    };
    Ok(crate::pages::render_page(problem.kind().status, &page))
}

/// Sets the members of a group. Those that the form did not show are not replaced.
async fn set_group_from_form(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    form: &GroupForm,
) -> Result<()> {
    let is_new = form.seen.is_empty();
    if is_new && group_show(context, caller, name).await.is_ok() {
        let problem = "The group exists already. Choose it in the list to change its members.";
        return Err(AppError::conflict(problem));
    }
    let members = GroupMembers {
        members: nonempty_lines(&form.members),
    };
    let if_match = IfMatch((!is_new).then(|| form.seen.clone()));
    group_put(context, caller, name, &members, &if_match).await?;
    Ok(())
}

fn group_deletion_page(frame: Frame, name: &str) -> ConfirmPage {
    let shown = text::single_line(name, LINE);
    ConfirmPage {
        frame,
        title: format!("Delete the group {shown}"),
        losses: vec![format!(
            "The group {shown}: its members no longer find what is shown to it alone, and policies that name it no \
             longer match them."
        )],
        action: "/admin/groups".to_owned(),
        fields: vec![("name", shown), ("act", "delete".to_owned())],
        button: "Delete the group",
        back: "/admin/groups".to_owned(),
    }
}

/// Texts that stand in lines.
pub(crate) fn nonempty_lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

fn next_page_url(path: &str, token: Option<&str>) -> Option<String> {
    let query = serde_html_form::to_string([("page_token", token?)]).ok()?;
    Some(format!("{path}?{query}"))
}

impl GroupForm {
    fn from_group(group: &Group) -> Result<Self> {
        Ok(Self {
            name: group.name.clone(),
            members: text::multiline_text(&group.members.join("\n"), usize::MAX),
            seen: RenderedJson::render(group)?.tag,
            ..Self::default()
        })
    }
}

impl GroupsPage {
    fn member_names(group: &Group) -> String {
        let names: Vec<&str> = group
            .members
            .iter()
            .take(MEMBERS)
            .map(String::as_str)
            .collect();
        text::single_line(&names.join(", "), BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pages::tests::api_samples::{AT, admin_frame, read, session, token};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| StatusPage {
            frame: admin_frame("admin"),
            now: NOW,
            readiness: read(json!({"ready": false, "approve_all": false,
                "checks": [{"name": text, "ok": false, "detail": text}]})),
            providers: vec![ProviderStatus {
                name: text.to_owned(),
                issuer: text.to_owned(),
                errors: 2,
                last_error: Some((NOW, text.to_owned())),
            }],
            peers: read(json!({
                "peers": [{"name": text, "url": text, "share_private": false, "left_alone": true,
                    "last_failure": text}],
                "candidates": [{"identifier": text, "display_name": text, "url": text, "domain": text}],
            })),
        });
        assert_harmless(|text| CredentialsPage {
            frame: admin_frame("admin"),
            now: NOW,
            here: "tokens",
            tokens: vec![read(token(text))],
            sessions: vec![read(session(text))],
            next: None,
        });
        assert_harmless(|text| GroupsPage {
            frame: admin_frame("admin"),
            groups: vec![read(
                json!({"origin": text, "name": text, "members": [text], "member_count": 1,
                "created_at": AT}),
            )],
            next: None,
            problem: None,
            typed: GroupForm::default(),
        });
        assert_harmless(|text| group_deletion_page(admin_frame("admin"), text));
    }
}
