//! Corrects the typing errors of a query before it is encoded, because a misspelled word means nothing to an encoder.

use a2a_registry_api::search_query::SearchMode;
use a2a_registry_policy::PolicySet;
use a2a_registry_search::may_have_typing_errors;

use crate::context::AppContext;
use crate::search_pool::run_search;
use crate::visibility::caller::Caller;

/// The words of a query with its typing errors corrected; `None` if it has none, or if the search encodes no query. If
/// the index cannot be read, the search itself reports it.
pub(super) async fn correct_encoded_query(
    context: &AppContext,
    caller: &Caller,
    policies: &PolicySet,
    query: &str,
    mode: SearchMode,
) -> Option<String> {
    let is_encoded = mode != SearchMode::Lexical && context.semantic_search.has_model();
    if !is_encoded || !may_have_typing_errors(query) {
        return None;
    }
    let (query, labels) = (query.to_owned(), caller.caller_class_labels(policies));
    let correction = run_search(context, caller, move |index| {
        index.correct_query(&query, &labels)
    });
    correction.await.ok().flatten()
}
