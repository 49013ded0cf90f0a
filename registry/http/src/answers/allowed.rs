//! The methods of every route: `Allow`, `OPTIONS`, and the response to a request without a route.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use a2a_registry_core::error::AppError;
use actix_web::dev::ResourceDef;
use actix_web::http::{Method, header};
use actix_web::{HttpRequest, HttpResponse};

use crate::answers::answer::Answer;
use crate::problems::problem::Problem;

struct RouteMethods {
    pattern: ResourceDef,
    methods: BTreeSet<String>,
    allow: String,
}

pub struct Addresses {
    /// The most specific patterns first, so that a verb matches before the identifier that it follows.
    table: Vec<RouteMethods>,
    /// The pattern of each handler that has a name.
    by_handler: HashMap<String, String>,
}

impl Addresses {
    /// From handlers, each with its name, method and pattern, and further patterns with their methods.
    pub fn new<'a>(
        handlers: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
        plain: &[(&str, &str)],
    ) -> Self {
        let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut by_handler = HashMap::new();
        for (name, method, pattern) in handlers {
            let known = methods.entry(pattern.to_owned()).or_default();
            known.insert(method.to_owned());
            by_handler.insert(name.to_owned(), pattern.to_owned());
        }
        for (pattern, method) in plain {
            let known = methods.entry((*pattern).to_owned()).or_default();
            known.insert((*method).to_owned());
        }
        let mut table: Vec<_> = methods.into_iter().collect();
        table.sort_by_key(|(pattern, _)| std::cmp::Reverse(literal_length(pattern)));
        Self {
            table: table
                .into_iter()
                .map(|(pattern, methods)| entry(&pattern, methods))
                .collect(),
            by_handler,
        }
    }

    fn find(&self, path: &str) -> Option<&RouteMethods> {
        self.table.iter().find(|entry| entry.pattern.is_match(path))
    }

    /// Whether `GET` is among the methods of that path, as the router sees it.
    pub fn takes_get(&self, path: &str) -> bool {
        self.find(path)
            .is_some_and(|entry| entry.methods.contains("GET"))
    }

    pub fn pattern_of(&self, handler: &str) -> Option<&str> {
        self.by_handler.get(handler).map(String::as_str)
    }
}

fn entry(path: &str, mut methods: BTreeSet<String>) -> RouteMethods {
    if methods.contains("GET") {
        methods.insert("HEAD".into());
    }
    methods.insert("OPTIONS".into());
    let allow = methods
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    RouteMethods {
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

/// The response without a route: 204 to `OPTIONS`, 405 if the path has other methods, else 404.
pub async fn unrouted(request: HttpRequest) -> Answer {
    let addresses = request.app_data::<&'static Addresses>();
    let Some(entry) = addresses.and_then(|addresses| addresses.find(request.path())) else {
        return Err(AppError::no_address().into());
    };
    let allow = entry.allow.as_str();
    if request.method() == Method::OPTIONS {
        return Ok(HttpResponse::NoContent()
            .insert_header((header::ALLOW, allow))
            .finish());
    }
    Err(Problem::wrong_method(allow))
}

/// Refuses a request that reached `…/{agent}` although its path ends with an unescaped verb that takes another method.
pub fn refuse_verb_of_other_method(request: &HttpRequest, raw: &str) -> Result<(), Problem> {
    let verb = raw.rsplit(['/', ':']).next().unwrap_or_default();
    // Only an unescaped colon begins a verb; the last part of the path decides.
    if !raw.ends_with(&format!(":{verb}")) || verb.is_empty() {
        return Ok(());
    }
    let addresses = request.app_data::<&'static Addresses>();
    match addresses.and_then(|addresses| addresses.find(request.path())) {
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
