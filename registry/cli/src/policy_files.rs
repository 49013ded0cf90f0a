//! Policies in files, and their differences from a set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use a2a_registry_api::limits::MAX_POLICY_TEXT_BYTES;
use a2a_registry_api::{NewPolicy, Policies, PolicyChange};

use super::command_error::CommandError;

/// File extension of policies.
const POLICY_EXTENSION: &str = "cedar";

/// Texts of policies by their identifiers.
pub type PolicyTexts = BTreeMap<String, String>;

/// The policies of a set that were written for it.
pub fn custom_policies(set: Policies) -> impl Iterator<Item = NewPolicy> {
    let custom = set.policies.into_iter().filter(|policy| !policy.shipped);
    custom.map(|policy| NewPolicy {
        id: policy.id,
        text: policy.text,
    })
}

pub fn policy_texts(policies: impl IntoIterator<Item = NewPolicy>) -> PolicyTexts {
    let policies = policies.into_iter();
    policies.map(|policy| (policy.id, policy.text)).collect()
}

/// The policies that differ, in the order of their identifiers, each with its text before and after. Another order of
/// the same policies is not a difference.
pub fn differing_policies(
    before: &PolicyTexts,
    after: &PolicyTexts,
) -> Vec<(String, Option<String>, Option<String>)> {
    let ids: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = ids
        .into_iter()
        .filter(|id| before.get(*id) != after.get(*id));
    differing
        .map(|id| (id.clone(), before.get(id).cloned(), after.get(id).cloned()))
        .collect()
}

/// What would be done to the policies that differ.
pub fn compare_policies(before: &PolicyTexts, after: &PolicyTexts) -> Vec<PolicyChange> {
    let differing = differing_policies(before, after).into_iter();
    differing
        .map(|(id, old, new)| {
            let what = match (old, new) {
                (None, _) => "add",
                (_, None) => "remove",
                _ => "change",
            };
            PolicyChange {
                id,
                what: what.to_owned(),
            }
        })
        .collect()
}

/// Reads policies from these files and folders, in the order of their identifiers.
///
/// # Errors
/// If a file cannot be read, is too long or is not a policy, and if there are none.
pub fn read_policies(files: &[PathBuf]) -> Result<Vec<NewPolicy>, CommandError> {
    let mut paths = Vec::new();
    for path in files {
        if path.is_dir() {
            paths.extend(list_policy_files(path)?);
        } else {
            paths.push(path.clone());
        }
    }
    let mut policies = BTreeMap::new();
    for path in paths {
        let policy = read_policy(&path)?;
        if policies.contains_key(&policy.id) {
            return Err(CommandError::new(format!(
                "two files are named {}.{POLICY_EXTENSION}: the name is the policy's identifier",
                policy.id
            )));
        }
        policies.insert(policy.id.clone(), policy);
    }
    if policies.is_empty() {
        return Err(CommandError::new(format!(
            "the given folders contain no *.{POLICY_EXTENSION} file, and a set without policies hides every agent"
        )));
    }
    Ok(policies.into_values().collect())
}

fn list_policy_files(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let failed =
        |error: std::io::Error| CommandError::new(format!("{}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == POLICY_EXTENSION)
        {
            paths.push(path);
        }
    }
    Ok(paths)
}

fn read_policy(path: &Path) -> Result<NewPolicy, CommandError> {
    let file_error = |reason: String| CommandError::new(format!("{}: {reason}", path.display()));
    let length = std::fs::metadata(path)
        .map_err(|error| file_error(error.to_string()))?
        .len();
    if length > MAX_POLICY_TEXT_BYTES as u64 {
        return Err(file_error(format!(
            "a policy must have at most {MAX_POLICY_TEXT_BYTES} bytes"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| file_error(error.to_string()))?;
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let id = stem.ok_or_else(|| file_error("the file name is not an identifier".to_owned()))?;
    Ok(NewPolicy {
        id: id.to_owned(),
        text,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_files_whose_names_are_their_identifiers() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        assert!(read_policies(&[folder.path().to_owned()]).is_err());
        write("b.cedar", "two");
        write("a.cedar", "one");
        write("notes.txt", "none");
        let read = read_policies(&[folder.path().to_owned()]).unwrap();
        let names: Vec<_> = read
            .iter()
            .map(|one| (one.id.as_str(), one.text.as_str()))
            .collect();
        assert_eq!(names, [("a", "one"), ("b", "two")]);
        let twice = [folder.path().to_owned(), folder.path().join("a.cedar")];
        assert!(read_policies(&twice).is_err());
        assert!(read_policies(&[folder.path().join("missing.cedar")]).is_err());
        write("large.cedar", &" ".repeat(MAX_POLICY_TEXT_BYTES + 1));
        assert!(read_policies(&[folder.path().join("large.cedar")]).is_err());
    }
}
