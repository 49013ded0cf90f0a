//! Collection pages: the list that the visitor may see, and one collection with its agents. Curators create and change
//! collections there.

use a2a_registry_api::limits::{
    MAX_AUDIENCE_GROUPS, MAX_COLLECTION_NAME, MAX_DESCRIPTION, MAX_FILTER_TEXT,
    MAX_GROUP_NAME_CHARS,
};
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{AgentList, Collection, CollectionContent};
use a2a_registry_core::collections::actions::{
    collection_create, collection_delete, collection_list, collection_put, collection_show,
};
use a2a_registry_core::collections::deletion_impact::collection_deletion_losses;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::entity_tag::RenderedJson;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::{self, moment, render_page};
use crate::problems::problem::Problem;
use crate::requests::auth::Curate;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::path_parameters::CollectionRef;
use crate::requests::visitor::Visitor;

#[derive(Template)]
#[template(path = "collections.html")]
struct CollectionsPage {
    frame: Frame,
    now: Timestamp,
    collections: Vec<Collection>,
    /// Form for a new collection, for curators.
    edit: Option<CollectionForm>,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "collection.html")]
struct CollectionPage {
    frame: Frame,
    now: Timestamp,
    collection: Collection,
    /// Number of agents of the collection that the visitor finds.
    agents: Option<String>,
    /// Edit form. Texts are not altered, because the form saves them as shown.
    edit: Option<CollectionForm>,
    problem: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CollectionForm {
    act: String,
    name: String,
    description: String,
    filter: String,
    audience: String,
    everybody: String,
    owners: String,
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

pub(crate) async fn show_collections(
    context: web::Data<AppContext>,
    visitor: Visitor,
) -> HandlerResult {
    let form = CollectionForm::new();
    let shown = collections_page(&context, &visitor, &form, None).await?;
    Ok(render_page(StatusCode::OK, &shown))
}

pub(crate) async fn create_collection(
    form: PermittedForm<Curate, CollectionForm>,
) -> HandlerResult {
    let name = form.fields.name.trim().to_owned();
    let result =
        create_collection_from_form(&form.context, &form.visitor.caller, &name, &form.fields).await;
    match result {
        Ok(()) => Ok(redirect_to_collection(&name)),
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log_problem(&problem);
            let status = problem.kind().status;
            let message = Some(text::single_line(&problem.to_string(), BLOCK));
            let shown =
                collections_page(&form.context, &form.visitor, &form.fields, message).await?;
            Ok(render_page(status, &shown))
        }
    }
}

pub(crate) async fn show_collection(
    context: web::Data<AppContext>,
    visitor: Visitor,
    collection: CollectionRef,
) -> HandlerResult {
    let current = collection_show(&context, &visitor.caller, &collection.0).await?;
    let form = CollectionForm::from_collection(&current)?;
    let shown = collection_page(&context, &visitor, current, &form, None).await?;
    Ok(render_page(StatusCode::OK, &shown))
}

/// Changes a collection, or deletes it after confirmation.
pub(crate) async fn submit_collection(
    collection: CollectionRef,
    form: PermittedForm<Curate, CollectionForm>,
) -> HandlerResult {
    let (name, caller, fields) = (&collection.0, &form.visitor.caller, &form.fields);
    let current = collection_show(&form.context, caller, name).await?;
    let precondition = IfMatch(Some(fields.seen.clone()));
    let result = match (fields.act.as_str(), fields.confirm.is_given()) {
        ("delete", true) => collection_delete(&form.context, caller, name, &precondition).await,
        ("delete", false) => match precondition.check(Some(&current)) {
            Ok(()) => {
                let confirmation =
                    collection_deletion_page(&form.context, &form.visitor, &current, fields)
                        .await?;
                return Ok(render_page(StatusCode::OK, &confirmation));
            }
            Err(error) => Err(error),
        },
        _ => collection_put(
            &form.context,
            caller,
            name,
            &fields.to_content(),
            &precondition,
        )
        .await
        .map(drop),
    };
    match result {
        Ok(()) if fields.act == "delete" => Ok(crate::pages::see_other("/collections")),
        Ok(()) => Ok(redirect_to_collection(name)),
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log_problem(&problem);
            let status = problem.kind().status;
            let message = Some(text::single_line(&problem.to_string(), BLOCK));
            let shown =
                collection_page(&form.context, &form.visitor, current, fields, message).await?;
            Ok(render_page(status, &shown))
        }
    }
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
    problem: Option<String>,
) -> Result<CollectionsPage> {
    let list = collection_list(context, &visitor.caller).await?;
    Ok(CollectionsPage {
        frame: Frame::for_visitor(&context.config(), "collections", visitor),
        now: context.now(),
        collections: list.collections,
        edit: form.clone_if_editable(visitor),
        problem,
    })
}

async fn collection_page(
    context: &AppContext,
    visitor: &Visitor,
    collection: Collection,
    form: &CollectionForm,
    problem: Option<String>,
) -> Result<CollectionPage> {
    Ok(CollectionPage {
        frame: Frame::for_visitor(&context.config(), "collections", visitor),
        now: context.now(),
        agents: collection_size_text(context, &visitor.caller, &collection.name).await,
        collection,
        edit: form.clone_if_editable(visitor),
        problem,
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
    let agents = collection_size_text(context, &visitor.caller, &collection.name).await;
    let mut losses = vec![
        format!("The collection {name}: {filter}"),
        match agents {
            Some(agents) => {
                format!("{agents} that you find by its name; the agents themselves are kept.")
            }
            None => "The list of its agents; the agents themselves are kept.".to_owned(),
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

/// Text with the number of agents of a collection that the caller finds; `None` if the index cannot be read.
async fn collection_size_text(context: &AppContext, caller: &Caller, name: &str) -> Option<String> {
    let query = SearchQuery {
        collection: vec![name.to_owned()],
        page_size: Some(1),
        ..SearchQuery::default()
    };
    let response = search_agents(context, caller, &query).await.ok()?;
    let list: AgentList = serde_json::from_slice(&response).ok()?;
    Some(text::number_with_noun(&list.total, "agent", "agents"))
}

/// Parses one name per line. A group name may contain anything except a line break.
fn parse_lines(text: &str) -> Vec<String> {
    let names = text.lines().filter(|name| !name.trim().is_empty());
    names.map(str::to_owned).collect()
}

/// Writes one name per line.
fn join_lines<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let lines = names.into_iter().map(|name| format!("{name}\n"));
    lines.collect()
}

impl CollectionForm {
    /// An empty form of a public collection.
    fn new() -> Self {
        Self {
            everybody: "true".to_owned(),
            ..Self::default()
        }
    }

    fn from_collection(collection: &Collection) -> Result<Self> {
        Ok(Self {
            description: collection.description.clone(),
            filter: collection.filter.clone(),
            everybody: match collection.audience {
                None => "true".to_owned(),
                Some(_) => String::new(),
            },
            audience: join_lines(collection.audience.iter().flatten()),
            owners: join_lines(&collection.owners),
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
                .then(|| parse_lines(&self.audience)),
            owners: parse_lines(&self.owners),
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
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| CollectionsPage {
            frame: admin_frame("collections"),
            now: NOW,
            collections: vec![read(collection(text))],
            edit: Some(CollectionForm::new()),
            problem: None,
        });
        assert_harmless(|text| CollectionPage {
            frame: admin_frame("collections"),
            now: NOW,
            collection: read(collection(text)),
            agents: None,
            edit: Some(CollectionForm::new()),
            problem: None,
        });
    }
}
