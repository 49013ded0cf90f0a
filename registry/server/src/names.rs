//! Names of accounts, groups, tokens and saved searches: what may be one.

use a2a_registry_api::limits::MAX_NAME;

use crate::error::AppError;

/// Refuses what is no name.
///
/// # Errors
/// `Invalid`.
pub(crate) fn check_name(pointer: &str, name: &str) -> Result<(), AppError> {
    let fits = !name.is_empty()
        && name.len() <= MAX_NAME
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || " ._-@".contains(c));
    if fits {
        return Ok(());
    }
    Err(AppError::invalid(
        pointer,
        format!("a name has 1 to {MAX_NAME} letters, digits, blanks or any of . _ - @"),
    ))
}

/// Refuses lists of names in which one is none, or that are too long.
///
/// # Errors
/// `Invalid`.
pub(crate) fn check_names(pointer: &str, names: &[String], most: usize) -> Result<(), AppError> {
    if names.len() > most {
        return Err(AppError::invalid(pointer, format!("at most {most} names")));
    }
    let mut numbered = names.iter().enumerate();
    numbered.try_for_each(|(at, name)| check_name(&format!("{pointer}/{at}"), name))
}
