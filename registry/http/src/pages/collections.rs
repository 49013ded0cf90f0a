//! Collection pages: the list that the visitor may see, and one collection with its agents. Curators create and change
//! collections there, and see beforehand which agents a filter finds.

mod members;
mod name_choices;

use a2a_registry_api::limits::{
    MAX_AUDIENCE_GROUPS, MAX_COLLECTION_NAME, MAX_DESCRIPTION, MAX_FILTER_TEXT,
    MAX_GROUP_NAME_CHARS, MAX_NAME,
};
use a2a_registry_api::{Collection, CollectionContent};
use a2a_registry_core::collections::actions::{
    collection_create, collection_delete, collection_list, collection_put, collection_show,
};
use a2a_registry_core::collections::deletion_impact::collection_deletion_losses;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::entity_tag::RenderedJson;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use members::MembersView;
use name_choices::NameChoices;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::{self, moment, render_page};
use crate::problems::problem::Problem;
use crate::requests::auth::Curate;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::path_parameters::CollectionRef;
use crate::requests::query;
use crate::requests::visitor::Visitor;

#[derive(Template)]
#[template(path = "collections.html")]
struct CollectionsPage {
    frame: Frame,
    now: Timestamp,
    collections: Vec<Collection>,
    /// Form for a new collection, for curators.
    edit: Option<CollectionForm>,
    choices: NameChoices,
    feedback: FormFeedback,
}

#[derive(Template)]
#[template(path = "collection.html")]
struct CollectionPage {
    frame: Frame,
    now: Timestamp,
    collection: Collection,
    /// Agents of the collection; `None` if they cannot be searched now.
    members: Option<MembersView>,
    /// Edit form. Texts are not altered, because the form saves them as shown.
    edit: Option<CollectionForm>,
    choices: NameChoices,
    feedback: FormFeedback,
}

/// What the page says above a form with input.
#[derive(Default)]
struct FormFeedback {
    problem: Option<String>,
    /// Agents that the filter in the form finds.
    preview: Option<MembersView>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CollectionForm {
    act: String,
    name: String,
    description: String,
    filter: String,
    audience: Vec<String>,
    everybody: String,
    owners: Vec<String>,
    /// Entity tag of the collection in the form; empty for a new one.
    seen: String,
    confirm: Confirmation,
}

/// Size limits of the form: each character may take four bytes, and each byte may be escaped.
impl FormFields for CollectionForm {
    const MAX_BYTES: usize = 12
        * (MAX_DESCRIPTION + MAX_FILTER_TEXT + MAX_AUDIENCE_GROUPS * (MAX_GROUP_NAME_CHARS + 1))
        + 16 * 1024;
}

/// Shows the list. `?filter=` opens the form for a new collection with a filter.
pub(crate) async fn show_collections(
    context: web::Data<AppContext>,
    visitor: Visitor,
    request: HttpRequest,
) -> HandlerResult {
    let form = CollectionForm {
        everybody: "true".to_owned(),
        ..query::parse_query(request.query_string())?
    };
    let (status, feedback) = match form.clone_if_editable(&visitor) {
        Some(form) if !form.filter.is_empty() => {
            FormFeedback::preview(&context, &visitor, &form).await
        }
        _ => (StatusCode::OK, FormFeedback::default()),
    };
    let shown = collections_page(&context, &visitor, &form, feedback).await?;
    Ok(render_page(status, &shown))
}

pub(crate) async fn create_collection(
    form: PermittedForm<Curate, CollectionForm>,
) -> HandlerResult {
    let (context, visitor, fields) = (&form.context, &form.visitor, &form.fields);
    let name = fields.name.trim();
    let (status, feedback) = match fields.act.as_str() {
        "preview" => FormFeedback::preview(context, visitor, fields).await,
        _ => match create_collection_from_form(context, &visitor.caller, name, fields).await {
            Ok(()) => return Ok(redirect_to_collection(name)),
            Err(error) => FormFeedback::from_error(error),
        },
    };
    let shown = collections_page(context, visitor, fields, feedback).await?;
    Ok(render_page(status, &shown))
}

pub(crate) async fn show_collection(
    context: web::Data<AppContext>,
    visitor: Visitor,
    collection: CollectionRef,
) -> HandlerResult {
    let current = collection_show(&context, &visitor.caller, &collection.0).await?;
    let form = CollectionForm::from_collection(&current)?;
    let feedback = FormFeedback::default();
    let shown = collection_page(&context, &visitor, current, &form, feedback).await?;
    Ok(render_page(StatusCode::OK, &shown))
}

/// Changes a collection, deletes it after confirmation, or shows which agents the filter in the form finds.
pub(crate) async fn submit_collection(
    collection: CollectionRef,
    form: PermittedForm<Curate, CollectionForm>,
) -> HandlerResult {
    let (context, visitor, fields) = (&form.context, &form.visitor, &form.fields);
    let (name, caller) = (&collection.0, &visitor.caller);
    let current = collection_show(context, caller, name).await?;
    let precondition = IfMatch(Some(fields.seen.clone()));
    let result = match (fields.act.as_str(), fields.confirm.is_given()) {
        ("preview", _) => {
            let (status, feedback) = FormFeedback::preview(context, visitor, fields).await;
            let shown = collection_page(context, visitor, current, fields, feedback).await?;
            return Ok(render_page(status, &shown));
        }
        ("delete", true) => collection_delete(context, caller, name, &precondition).await,
        ("delete", false) => match precondition.check(Some(&current)) {
            Ok(()) => {
                let confirmation =
                    collection_deletion_page(context, visitor, &current, fields).await?;
                return Ok(render_page(StatusCode::OK, &confirmation));
            }
            Err(error) => Err(error),
        },
        _ => collection_put(context, caller, name, &fields.to_content(), &precondition)
            .await
            .map(drop),
    };
    let (status, feedback) = match result {
        Ok(()) if fields.act == "delete" => return Ok(crate::pages::see_other("/collections")),
        Ok(()) => return Ok(redirect_to_collection(name)),
        Err(error) => FormFeedback::from_error(error),
    };
    let shown = collection_page(context, visitor, current, fields, feedback).await?;
    Ok(render_page(status, &shown))
}

async fn create_collection_from_form(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    fields: &CollectionForm,
) -> Result<()> {
    let result = collection_create(context, caller, name, &fields.to_content()).await;
    result.map(drop).map_err(|error| match error.kind {
        a2a_registry_core::error::ErrorKind::NotFound => AppError::invalid(
            "/name",
            format!(
                "A name must have 1 to {MAX_COLLECTION_NAME} lower-case letters and digits, and may have . _ - inside."
            ),
        ),
        _ => error,
    })
}

fn redirect_to_collection(name: &str) -> HttpResponse {
    let link = format!("/collections/{}", text::path_segment(name));
    crate::pages::see_other(&link)
}

async fn collections_page(
    context: &AppContext,
    visitor: &Visitor,
    form: &CollectionForm,
    feedback: FormFeedback,
) -> Result<CollectionsPage> {
    let list = collection_list(context, &visitor.caller).await?;
    let edit = form.clone_if_editable(visitor);
    Ok(CollectionsPage {
        frame: Frame::for_visitor(&context.config(), "collections", visitor),
        now: context.now(),
        collections: list.collections,
        choices: NameChoices::load(context, &visitor.caller, edit.is_some()).await?,
        edit,
        feedback,
    })
}

async fn collection_page(
    context: &AppContext,
    visitor: &Visitor,
    collection: Collection,
    form: &CollectionForm,
    feedback: FormFeedback,
) -> Result<CollectionPage> {
    let members = MembersView::load(context, &visitor.caller, &collection.filter).await;
    let edit = form.clone_if_editable(visitor);
    Ok(CollectionPage {
        frame: Frame::for_visitor(&context.config(), "collections", visitor),
        now: context.now(),
        members: members.ok(),
        collection,
        choices: NameChoices::load(context, &visitor.caller, edit.is_some()).await?,
        edit,
        feedback,
    })
}

/// Confirmation page before a collection is deleted.
async fn collection_deletion_page(
    context: &AppContext,
    visitor: &Visitor,
    collection: &Collection,
    fields: &CollectionForm,
) -> Result<ConfirmPage> {
    let name = text::single_line(&collection.name, LINE);
    let filter = text::single_line(&collection.filter, MAX_FILTER_TEXT);
    let link = format!("/collections/{}", text::path_segment(&collection.name));
    let members = MembersView::load(context, &visitor.caller, &collection.filter).await;
    let mut losses = vec![
        format!("The collection {name}: {filter}"),
        match members {
            Ok(members) => format!(
                "{} that you find by its name; the agents themselves are kept.",
                members.count
            ),
            Err(_) => "The list of its agents; the agents themselves are kept.".to_owned(),
        },
        format!("It is shown to {}.", CollectionsPage::audience(collection)),
    ];
    let used = collection_deletion_losses(context, &collection.name).await?;
    losses.extend(used.iter().map(|used| text::single_line(used, BLOCK)));
    Ok(ConfirmPage {
        frame: Frame::for_visitor(&context.config(), "collections", visitor),
        title: format!("Delete the collection {name}"),
        losses,
        action: link.clone(),
        fields: vec![("act", "delete".to_owned()), ("seen", fields.seen.clone())],
        button: "Delete the collection",
        back: link,
    })
}

impl FormFeedback {
    /// The reason why an act was refused, with the status of the page.
    fn from_error(error: AppError) -> (StatusCode, Self) {
        let problem = Problem::from(error);
        crate::pages::log_problem(&problem);
        let feedback = Self {
            problem: Some(text::single_line(&problem.to_string(), BLOCK)),
            preview: None,
        };
        (problem.kind().status, feedback)
    }

    /// The agents that the filter in a form finds, or the reason why it finds none.
    async fn preview(
        context: &AppContext,
        visitor: &Visitor,
        form: &CollectionForm,
    ) -> (StatusCode, Self) {
        match MembersView::load(context, &visitor.caller, &form.filter).await {
            Ok(members) => {
                let feedback = Self {
                    problem: None,
                    preview: Some(members),
                };
                (StatusCode::OK, feedback)
            }
            Err(error) => Self::from_error(error),
        }
    }
}

fn nonempty_names(names: &[String]) -> Vec<String> {
    let names = names.iter().filter(|name| !name.trim().is_empty());
    names.cloned().collect()
}

impl CollectionForm {
    fn from_collection(collection: &Collection) -> Result<Self> {
        Ok(Self {
            description: collection.description.clone(),
            filter: collection.filter.clone(),
            everybody: match collection.audience {
                None => "true".to_owned(),
                Some(_) => String::new(),
            },
            audience: collection.audience.clone().unwrap_or_default(),
            owners: collection.owners.clone(),
            seen: RenderedJson::render(collection)?.tag,
            ..Self::default()
        })
    }

    fn clone_if_editable(&self, visitor: &Visitor) -> Option<Self> {
        let curates =
            visitor.caller.has_permission(Permission::Curate) && visitor.form_token.is_some();
        curates.then(|| self.clone())
    }

    fn to_content(&self) -> CollectionContent {
        CollectionContent {
            description: self.description.replace("\r\n", "\n"),
            filter: self.filter.clone(),
            audience: self
                .everybody
                .is_empty()
                .then(|| nonempty_names(&self.audience)),
            owners: nonempty_names(&self.owners),
        }
    }
}

impl CollectionsPage {
    fn audience(collection: &Collection) -> String {
        let audience = match &collection.audience {
            None => "everyone".to_owned(),
            Some(groups) if groups.is_empty() => "its owners and curators".to_owned(),
            Some(groups) => format!("members of {}", groups.join(", ")),
        };
        text::single_line(&audience, BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{admin_frame, collection, read};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::{self, NOW};

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| CollectionsPage {
            frame: admin_frame("collections"),
            now: NOW,
            collections: vec![read(collection(text))],
            edit: Some(CollectionForm::default()),
            choices: NameChoices::default(),
            feedback: FormFeedback::default(),
        });
        assert_harmless(|text| CollectionPage {
            frame: admin_frame("collections"),
            now: NOW,
            collection: read(collection(text)),
            members: Some(MembersView {
                count: "1 agent".to_owned(),
                link: "/?q=".to_owned(),
                agents: vec![samples::hit(
                    &samples::card(&samples::hostile(text)),
                    1,
                    "x",
                )],
            }),
            edit: Some(CollectionForm::default()),
            choices: NameChoices::default(),
            feedback: FormFeedback::default(),
        });
    }
}
