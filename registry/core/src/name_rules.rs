//! The rules for names of accounts, groups, tokens and saved searches.

use a2a_registry_api::limits::MAX_NAME;

use crate::error::{AppError, Result};

/// Names with a fixed meaning, in upper or lower case: clients without a token (`anonymous`, `anyone`), the caller
/// (`me`), no account and every account (`nobody`, `everybody`), the actors of decisions and events that are no
/// accounts (`crawler`, `policy`, `system`), and the account of the bootstrap token (`admin`).
pub const RESERVED_NAMES: [&str; 9] = [
    "admin",
    "anonymous",
    "anyone",
    "crawler",
    "everybody",
    "me",
    "nobody",
    "policy",
    "system",
];

pub fn check_name(pointer: &str, name: &str) -> Result<()> {
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
        format!("a name must have 1 to {MAX_NAME} letters, digits, spaces or any of . _ - @"),
    ))
}

/// Refuses an invalid name of a new account or group: a reserved one would be mistaken for its other meaning.
pub fn check_unreserved_name(pointer: &str, name: &str) -> Result<()> {
    check_name(pointer, name)?;
    let mut reserved = RESERVED_NAMES.iter();
    if !reserved.any(|reserved| reserved.eq_ignore_ascii_case(name.trim())) {
        return Ok(());
    }
    Err(AppError::conflict(format!(
        "The name {name} is reserved in this registry. Choose another one."
    )))
}

/// Refuses lists of names that are too long or contain an invalid one.
pub fn check_names(pointer: &str, names: &[String], max: usize) -> Result<()> {
    if names.len() > max {
        return Err(AppError::invalid(pointer, format!("at most {max} names")));
    }
    let mut numbered = names.iter().enumerate();
    numbered.try_for_each(|(at, name)| check_name(&format!("{pointer}/{at}"), name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn no_account_or_group_gets_a_name_with_a_meaning() {
        for reserved in RESERVED_NAMES {
            let capital = reserved[..1].to_uppercase() + &reserved[1..];
            for name in [
                reserved.to_owned(),
                reserved.to_uppercase(),
                capital,
                format!(" {reserved} "),
            ] {
                check_name("/name", &name).unwrap();
                let refused = check_unreserved_name("/name", &name).unwrap_err();
                assert_eq!(refused.kind, ErrorKind::Conflict, "{name}");
            }
            let other = format!("{reserved}s");
            check_unreserved_name("/name", &other).unwrap();
        }
        let odd = check_unreserved_name("/name", "a/b").unwrap_err();
        assert_eq!(odd.kind, ErrorKind::Invalid);
    }
}
