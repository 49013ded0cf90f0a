//! Methods of every route: `Allow`, `OPTIONS`, and the response to requests without a route.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use a2a_registry_core::error::AppError;
use actix_web::dev::ResourceDef;
use actix_web::http::{Method, header};
use actix_web::{HttpRequest, HttpResponse};

use crate::answers::response::HandlerResult;
use crate::problems::problem::Problem;

struct RouteMethods {
    pattern: ResourceDef,
    methods: BTreeSet<String>,
    allow: String,
}

pub struct RouteTable {
    /// Routes, most specific pattern first, so that a verb matches before the identifier that it follows.
    routes: Vec<RouteMethods>,
    /// Pattern of each named handler.
    patterns_by_handler: HashMap<String, String>,
}

impl RouteTable {
    /// Builds the table from handlers, each with name, method and pattern, and from other patterns with their methods.
    pub fn new<'a>(
        handlers: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>,
        unnamed_routes: &[(&str, &str)],
    ) -> Self {
        let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut patterns_by_handler = HashMap::new();
        for (name, method, pattern) in handlers {
            let pattern_methods = methods.entry(pattern.to_owned()).or_default();
            pattern_methods.insert(method.to_owned());
            patterns_by_handler.insert(name.to_owned(), pattern.to_owned());
        }
        for (pattern, method) in unnamed_routes {
            let pattern_methods = methods.entry((*pattern).to_owned()).or_default();
            pattern_methods.insert((*method).to_owned());
        }
        let mut routes: Vec<_> = methods.into_iter().collect();
        routes.sort_by_key(|(pattern, _)| std::cmp::Reverse(literal_pattern_length(pattern)));
        Self {
            routes: routes
                .into_iter()
                .map(|(pattern, methods)| build_route(&pattern, methods))
                .collect(),
            patterns_by_handler,
        }
    }

    fn find(&self, path: &str) -> Option<&RouteMethods> {
        self.routes
            .iter()
            .find(|entry| entry.pattern.is_match(path))
    }

    /// Whether the path, as the router sees it, allows `GET`.
    pub fn allows_get(&self, path: &str) -> bool {
        self.find(path)
            .is_some_and(|entry| entry.methods.contains("GET"))
    }

    pub fn handler_pattern(&self, handler: &str) -> Option<&str> {
        self.patterns_by_handler.get(handler).map(String::as_str)
    }
}

fn build_route(path: &str, mut methods: BTreeSet<String>) -> RouteMethods {
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

fn literal_pattern_length(pattern: &str) -> usize {
    let mut inside = false;
    pattern
        .chars()
        .filter(|character| {
            inside = (inside && *character != '}') || *character == '{';
            !inside
        })
        .count()
}

/// Responds to a request without a route: 204 to `OPTIONS`, 405 if the path has other methods, otherwise 404.
pub async fn handle_unrouted(request: HttpRequest) -> HandlerResult {
    let route_table = request.app_data::<&'static RouteTable>();
    let Some(entry) = route_table.and_then(|addresses| addresses.find(request.path())) else {
        return Err(AppError::no_resource().into());
    };
    let allow = entry.allow.as_str();
    if request.method() == Method::OPTIONS {
        return Ok(HttpResponse::NoContent()
            .insert_header((header::ALLOW, allow))
            .finish());
    }
    Err(Problem::method_not_allowed(allow))
}

/// Rejects a request that matched `…/{agent}` although its path ends with an unescaped verb that requires another
/// method.
pub fn reject_verb_method_mismatch(request: &HttpRequest, raw_path: &str) -> Result<(), Problem> {
    let verb = raw_path.rsplit(['/', ':']).next().unwrap_or_default();
    // Only an unescaped colon in the last path segment starts a verb.
    if !raw_path.ends_with(&format!(":{verb}")) || verb.is_empty() {
        return Ok(());
    }
    let route_table = request.app_data::<&'static RouteTable>();
    match route_table.and_then(|addresses| addresses.find(request.path())) {
        Some(entry)
            if entry
                .pattern
                .pattern()
                .is_some_and(|pattern| pattern.ends_with(&format!("}}:{verb}")))
                && !entry.methods.contains(request.method().as_str()) =>
        {
            Err(Problem::method_not_allowed(&entry.allow))
        }
        _ => Ok(()),
    }
}
