//! The pages of collections: all that the visitor may see, and one with its agents; curators create and change them
//! there.

use a2a_registry_api::limits::{
    MAX_AUDIENCE, MAX_COLLECTION_NAME, MAX_DESCRIPTION, MAX_FILTER_TEXT, MAX_GROUP,
};
use a2a_registry_api::{AgentList, Collection, CollectionContent};
use a2a_registry_core::collections::acts::{
    collection_delete, collection_list, collection_make, collection_put, collection_show,
};
use a2a_registry_core::collections::deletion::lost_uses;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::memory::agents::RenderedJson;
use a2a_registry_core::precondition::Precondition;
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::search::search;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template;
use serde::Deserialize;

use crate::answers::answer::Answer;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::{self, moment, page};
use crate::problems::problem::Problem;
use crate::requests::auth::Curate;
use crate::requests::forms::{FormFields, FormOf};
use crate::requests::path::CollectionRef;
use crate::requests::visitor::Visitor;

#[derive(Template)]
#[template(path = "collections.html")]
struct CollectionsPage {
    frame: Frame,
    now: Timestamp,
    collections: Vec<Collection>,
    /// The form for a new one, for curators.
    edit: Option<CollectionForm>,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "collection.html")]
struct CollectionPage {
    frame: Frame,
    now: Timestamp,
    collection: Collection,
    /// The number of its agents that the visitor finds.
    agents: Option<String>,
    /// The form, each text unchanged: what is shown here is what is saved.
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
    /// The entity tag of the collection that the form shows; empty for a new one.
    seen: String,
    confirm: Confirmation,
}

/// Each character may take four bytes, and each byte may be escaped.
impl FormFields for CollectionForm {
    const LIMIT: usize =
        12 * (MAX_DESCRIPTION + MAX_FILTER_TEXT + MAX_AUDIENCE * (MAX_GROUP + 1)) + 16 * 1024;
}

pub(crate) async fn show_all(context: web::Data<Context>, visitor: Visitor) -> Answer {
    let form = CollectionForm::new();
    let shown = collections_page(&context, &visitor, &form, None).await?;
    Ok(page(StatusCode::OK, &shown))
}

pub(crate) async fn create(form: FormOf<Curate, CollectionForm>) -> Answer {
    let name = form.fields.name.trim().to_owned();
    let made = made(&form.context, &form.visitor.caller, &name, &form.fields).await;
    match made {
        Ok(()) => Ok(to(&name)),
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log(&problem);
            let status = problem.kind().status;
            let said = Some(text::line(&problem.to_string(), BLOCK));
            let shown = collections_page(&form.context, &form.visitor, &form.fields, said).await?;
            Ok(page(status, &shown))
        }
    }
}

pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: Visitor,
    collection: CollectionRef,
) -> Answer {
    let found = collection_show(&context, &visitor.caller, &collection.0).await?;
    let form = CollectionForm::of(&found)?;
    let shown = collection_page(&context, &visitor, found, &form, None).await?;
    Ok(page(StatusCode::OK, &shown))
}

/// Changes a collection, or deletes it once that is confirmed.
pub(crate) async fn submit(
    collection: CollectionRef,
    form: FormOf<Curate, CollectionForm>,
) -> Answer {
    let (name, caller, fields) = (&collection.0, &form.visitor.caller, &form.fields);
    let found = collection_show(&form.context, caller, name).await?;
    let seen = Precondition(Some(fields.seen.clone()));
    let done = match (fields.act.as_str(), fields.confirm.is_given()) {
        ("delete", true) => collection_delete(&form.context, caller, name, &seen).await,
        ("delete", false) => match seen.check(Some(&found)) {
            Ok(()) => {
                let confirmation =
                    deletion_confirmation(&form.context, &form.visitor, &found, fields).await?;
                return Ok(page(StatusCode::OK, &confirmation));
            }
            Err(error) => Err(error),
        },
        _ => collection_put(&form.context, caller, name, &fields.content(), &seen)
            .await
            .map(drop),
    };
    match done {
        Ok(()) if fields.act == "delete" => Ok(crate::pages::see_other("/collections")),
        Ok(()) => Ok(to(name)),
        Err(error) => {
            let problem = Problem::from(error);
            crate::pages::log(&problem);
            let status = problem.kind().status;
            let said = Some(text::line(&problem.to_string(), BLOCK));
            let shown = collection_page(&form.context, &form.visitor, found, fields, said).await?;
            Ok(page(status, &shown))
        }
    }
}

async fn made(
    context: &Context,
    caller: &Caller,
    name: &str,
    fields: &CollectionForm,
) -> Result<()> {
    let made = collection_make(context, caller, name, &fields.content()).await;
    made.map(drop).map_err(|error| match error.kind {
        a2a_registry_core::error::ErrorKind::NotFound => AppError::invalid(
            "/name",
            format!(
                "A name has 1 to {MAX_COLLECTION_NAME} lower-case letters, digits, and . _ - inside."
            ),
        ),
        _ => error,
    })
}

fn to(name: &str) -> HttpResponse {
    let link = format!("/collections/{}", text::segment(name));
    crate::pages::see_other(&link)
}

async fn collections_page(
    context: &Context,
    visitor: &Visitor,
    form: &CollectionForm,
    problem: Option<String>,
) -> Result<CollectionsPage> {
    let list = collection_list(context, &visitor.caller).await?;
    Ok(CollectionsPage {
        frame: Frame::of(context.config(), "collections", visitor),
        now: context.now(),
        collections: list.collections,
        edit: form.shown_to(visitor),
        problem,
    })
}

async fn collection_page(
    context: &Context,
    visitor: &Visitor,
    found: Collection,
    form: &CollectionForm,
    problem: Option<String>,
) -> Result<CollectionPage> {
    Ok(CollectionPage {
        frame: Frame::of(context.config(), "collections", visitor),
        now: context.now(),
        agents: counted(context, &visitor.caller, &found.name).await,
        collection: found,
        edit: form.shown_to(visitor),
        problem,
    })
}

/// The page that asks before a collection is deleted.
async fn deletion_confirmation(
    context: &Context,
    visitor: &Visitor,
    found: &Collection,
    fields: &CollectionForm,
) -> Result<ConfirmPage> {
    let name = text::line(&found.name, LINE);
    let filter = text::line(&found.filter, MAX_FILTER_TEXT);
    let link = format!("/collections/{}", text::segment(&found.name));
    let agents = counted(context, &visitor.caller, &found.name).await;
    let mut losses = vec![
        format!("The collection {name}: {filter}"),
        match agents {
            Some(agents) => {
                format!("{agents} that you find by its name; the agents themselves stay.")
            }
            None => "The list of its agents; the agents themselves stay.".to_owned(),
        },
        format!("It is shown to {}.", CollectionsPage::audience(found)),
    ];
    let used = lost_uses(context, &found.name).await?;
    losses.extend(used.iter().map(|used| text::line(used, BLOCK)));
    Ok(ConfirmPage {
        frame: Frame::of(context.config(), "collections", visitor),
        title: format!("Delete the collection {name}"),
        losses,
        action: link.clone(),
        fields: vec![("act", "delete".to_owned()), ("seen", fields.seen.clone())],
        button: "Delete the collection",
        back: link,
    })
}

/// The number of agents of a collection that the caller finds; `None` if the index cannot be read.
async fn counted(context: &Context, caller: &Caller, name: &str) -> Option<String> {
    let query = SearchQuery {
        collection: vec![name.to_owned()],
        page_size: Some(1),
        ..SearchQuery::default()
    };
    let answer = search(context, caller, &query).await.ok()?;
    let list: AgentList = serde_json::from_slice(&answer).ok()?;
    Some(text::with_noun(&list.total, "agent", "agents"))
}

/// One name per line. A name of a group may contain anything but a line break.
fn names(text: &str) -> Vec<String> {
    let names = text.lines().filter(|name| !name.trim().is_empty());
    names.map(str::to_owned).collect()
}

/// One name per line.
fn in_lines<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
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

    fn of(collection: &Collection) -> Result<Self> {
        Ok(Self {
            description: collection.description.clone(),
            filter: collection.filter.clone(),
            everybody: match collection.audience {
                None => "true".to_owned(),
                Some(_) => String::new(),
            },
            audience: in_lines(collection.audience.iter().flatten()),
            owners: in_lines(&collection.owners),
            seen: RenderedJson::of(collection)?.tag,
            ..Self::default()
        })
    }

    fn shown_to(&self, visitor: &Visitor) -> Option<Self> {
        let curates = visitor.caller.may(Permission::Curate) && visitor.form_token.is_some();
        curates.then(|| self.clone())
    }

    fn content(&self) -> CollectionContent {
        CollectionContent {
            description: self.description.replace("\r\n", "\n"),
            filter: self.filter.clone(),
            audience: self.everybody.is_empty().then(|| names(&self.audience)),
            owners: names(&self.owners),
        }
    }
}

impl CollectionsPage {
    fn audience(collection: &Collection) -> String {
        let audience = match &collection.audience {
            None => "everybody".to_owned(),
            Some(groups) if groups.is_empty() => "its owners and curators".to_owned(),
            Some(groups) => format!("members of {}", groups.join(", ")),
        };
        text::line(&audience, BLOCK)
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
