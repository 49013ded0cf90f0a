//! Forms on a domain's page with which its owner, or an admin, sets and removes credentials of sources.

use a2a_registry_api::{DomainView, NewSourceCredential, SourceCredentialView};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::source_credential::{
    remove_source_credential, set_source_credential,
};
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::text::{self, ADDRESS, BLOCK};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::CredentialKind;
use actix_web::HttpResponse;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::domains::{DomainPage, LIST};
use crate::problems::problem::Problem;
use crate::requests::auth::Register;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::path_parameters::DomainRef;

/// The kinds with their labels.
pub(crate) const KINDS: &[(&str, &str)] = &[
    (CredentialKind::Bearer.as_str(), "Bearer token"),
    (CredentialKind::Basic.as_str(), "User name and password"),
    (CredentialKind::Header.as_str(), "Header field"),
    (
        CredentialKind::ClientCredentials.as_str(),
        "OAuth 2 client credentials",
    ),
];

pub(crate) struct CredentialFormView {
    pub problem: Option<String>,
    /// The sources that can have a credential: id and URL.
    pub sources: Vec<(String, String)>,
    /// The sources that have one.
    pub removable: Vec<(String, String)>,
    /// Input of a rejected form, without the secret.
    pub input: SetCredentialForm,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct SetCredentialForm {
    pub source: String,
    pub kind: String,
    pub name: String,
    secret: String,
    pub token_url: String,
    pub scope: String,
}

impl FormFields for SetCredentialForm {
    /// Each byte of a secret may be escaped.
    const MAX_BYTES: usize = 64 * 1024;
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RemoveCredentialForm {
    source: String,
    confirmed: String,
}

impl FormFields for RemoveCredentialForm {}

/// Sets a credential, and redirects to the sources. An error is shown above the form, which keeps its input except the
/// secret.
pub(crate) async fn set_credential(
    DomainRef(domain): DomainRef,
    form: PermittedForm<Register, SetCredentialForm>,
) -> HandlerResult {
    let (visitor, fields) = (&form.visitor, form.fields);
    let problem = match submit_credential(&form.context, &visitor.caller, &domain, &fields).await {
        Ok(_) => return Ok(redirect_to_sources(&domain)),
        Err(error) => Problem::from(error),
    };
    let Ok(view) = domain_show(&form.context, &visitor.caller, &domain).await else {
        return Err(problem);
    };
    let mut page = DomainPage::load(&form.context, visitor, view, None).await;
    let Some(form) = &mut page.credential_form else {
        return Err(problem);
    };
    crate::pages::log_problem(&problem);
    form.problem = Some(text::single_line(&problem.to_string(), BLOCK));
    form.input = SetCredentialForm {
        secret: String::new(),
        ..fields
    };
    Ok(crate::pages::render_page(problem.kind().status, &page))
}

async fn submit_credential(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    fields: &SetCredentialForm,
) -> Result<SourceCredentialView> {
    let kind = fields.kind.parse::<CredentialKind>();
    let kind =
        kind.map_err(|_| AppError::invalid("/kind", "Select the kind of the credential."))?;
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let credential = NewSourceCredential {
        kind,
        name: given(&fields.name),
        secret: fields.secret.clone().into(),
        token_url: given(&fields.token_url),
        scope: given(&fields.scope),
    };
    set_source_credential(context, caller, domain, &fields.source, &credential).await
}

/// Removes a credential, and redirects to the sources.
pub(crate) async fn remove_credential(
    DomainRef(domain): DomainRef,
    form: PermittedForm<Register, RemoveCredentialForm>,
) -> HandlerResult {
    if form.fields.confirmed.is_empty() {
        let detail = "Select the checkbox to confirm that the credential is removed, and submit the form again.";
        return Err(AppError::invalid("/confirmed", detail).into());
    }
    let (caller, source) = (&form.visitor.caller, &form.fields.source);
    remove_source_credential(&form.context, caller, &domain, source).await?;
    Ok(redirect_to_sources(&domain))
}

fn redirect_to_sources(domain: &str) -> HttpResponse {
    let here = format!("/domains/{}#sources", text::path_segment(domain));
    crate::pages::see_other(&here)
}

impl CredentialFormView {
    /// Form for the owner of a domain and for admins, if the domain has a source that can have a credential.
    pub fn for_caller(view: &DomainView, caller: &Caller) -> Option<Self> {
        let account = caller.account.as_ref()?;
        let is_owner = view.owner.as_ref() == Some(&account.name);
        if !is_owner && !caller.has_permission(Permission::Administer) {
            return None;
        }
        let entry = |id: &str, url: &str| (id.to_owned(), text::single_line(url, ADDRESS));
        let sources = view.sources.iter().take(LIST);
        let https = sources.clone().filter(|one| one.url.starts_with("https:"));
        let sources_with_one = sources.filter(|one| one.credential.is_some());
        let form = Self {
            problem: None,
            sources: https.map(|one| entry(&one.id, &one.url)).collect(),
            removable: sources_with_one
                .map(|one| entry(&one.id, &one.url))
                .collect(),
            input: SetCredentialForm::default(),
        };
        (!form.sources.is_empty()).then_some(form)
    }
}
