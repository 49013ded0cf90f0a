//! Which methods an address takes: `Allow`, `OPTIONS`, and what answers when no route does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use actix_web::dev::ResourceDef;
use actix_web::http::{Method, header};
use actix_web::{HttpRequest, HttpResponse};

use crate::error::AppError;
use crate::http::operations;
use crate::http::problem::Problem;
use crate::routes::PLAIN_ROUTES;

/// One pattern and its methods.
struct Entry {
    pattern: ResourceDef,
    methods: BTreeSet<String>,
    allow: String,
}

/// The most specific patterns first, so that a verb counts before the identifier it hangs on.
static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut methods: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for operation in operations::all() {
        methods
            .entry(&operation.path)
            .or_default()
            .insert(operation.method.clone());
    }
    for (path, method) in PLAIN_ROUTES {
        methods
            .entry(path)
            .or_default()
            .insert((*method).to_owned());
    }
    let mut table: Vec<_> = methods.into_iter().collect();
    table.sort_by_key(|(path, _)| std::cmp::Reverse(literal_length(path)));
    table
        .into_iter()
        .map(|(path, methods)| entry(path, methods))
        .collect()
});

fn entry(path: &str, mut methods: BTreeSet<String>) -> Entry {
    if methods.contains("GET") {
        methods.insert("HEAD".into());
    }
    methods.insert("OPTIONS".into());
    let allow = methods
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    Entry {
        pattern: ResourceDef::new(path),
        methods,
        allow,
    }
}

fn literal_length(pattern: &str) -> usize {
    let mut inside = false;
    pattern
        .chars()
        .filter(|character| {
            inside = (inside && *character != '}') || *character == '{';
            !inside
        })
        .count()
}

fn find(path: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.pattern.is_match(path))
}

/// Whether `GET` is among the methods of that path, as the router sees it.
pub fn takes_get(path: &str) -> bool {
    find(path).is_some_and(|entry| entry.methods.contains("GET"))
}

/// The methods of that path, as `Allow` lists them.
pub fn allow(path: &str) -> Option<&'static str> {
    find(path).map(|entry| entry.allow.as_str())
}

/// Answers what no route does: 204 to `OPTIONS`, 405 where there are other methods, 404 elsewhere.
///
/// # Errors
/// `wrong-method` and `not-found`.
pub async fn unrouted(request: HttpRequest) -> Result<HttpResponse, Problem> {
    let Some(allow) = allow(request.path()) else {
        return Err(AppError::not_found("address").into());
    };
    if request.method() == Method::OPTIONS {
        return Ok(HttpResponse::NoContent()
            .insert_header((header::ALLOW, allow))
            .finish());
    }
    Err(Problem::wrong_method(allow))
}

/// Refuses a request that reached `…/{agent}` although its path ends with a verb, written as one, that
/// takes another method.
///
/// # Errors
/// `wrong-method`.
pub fn refuse_verb_of_other_method(request: &HttpRequest, raw: &str) -> Result<(), Problem> {
    let verb = raw.rsplit(['/', ':']).next().unwrap_or_default();
    // Only a colon that stands for itself makes a verb; the last part of the path decides.
    if !raw.ends_with(&format!(":{verb}")) || verb.is_empty() {
        return Ok(());
    }
    match find(request.path()) {
        Some(entry)
            if entry
                .pattern
                .pattern()
                .is_some_and(|pattern| pattern.ends_with(&format!("}}:{verb}")))
                && !entry.methods.contains(request.method().as_str()) =>
        {
            Err(Problem::wrong_method(&entry.allow))
        }
        _ => Ok(()),
    }
}
