//! List of API operations, for `Allow`, for metrics, and for the authorization test.

use std::sync::LazyLock;

use utoipa::openapi::path::{Operation as Documented, PathItem};

use crate::routes::openapi;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiOperation {
    /// `operationId`, which is also the name of the handler.
    pub id: String,
    /// HTTP method, such as `GET` or `POST`.
    pub method: String,
    pub path: String,
}

static OPERATIONS: LazyLock<Vec<ApiOperation>> = LazyLock::new(|| {
    let document = openapi::default_openapi();
    let paths = document.paths.paths.iter();
    paths
        .flat_map(|(path, item)| {
            operations_with_method(item).map(move |(method, operation)| ApiOperation {
                id: operation.operation_id.clone().unwrap_or_default(),
                method: method.to_owned(),
                path: path.clone(),
            })
        })
        .collect()
});

pub fn all_api_operations() -> &'static [ApiOperation] {
    &OPERATIONS
}

/// Operations of one path, mutable.
pub fn operations_mut(item: &mut PathItem) -> impl Iterator<Item = &mut Documented> {
    [
        &mut item.get,
        &mut item.post,
        &mut item.put,
        &mut item.patch,
        &mut item.delete,
    ]
    .into_iter()
    .flatten()
}

/// Operations of one path, each with its method.
pub fn operations_with_method(
    item: &PathItem,
) -> impl Iterator<Item = (&'static str, &Documented)> {
    [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ]
    .into_iter()
    .filter_map(|(method, operation)| operation.as_ref().map(|operation| (method, operation)))
}
