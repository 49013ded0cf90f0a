//! Command that starts this program again, so that printed commands work as printed.

use std::path::{Path, PathBuf};

/// Word that starts this program from the current folder: its name if the search path finds this file by it, otherwise
/// a path to the file.
pub fn program_name() -> String {
    let Ok(executable) = std::env::current_exe() else {
        return "a2a-registry".to_owned();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folder = std::env::current_dir().ok();
    resolve_program_name(&executable, std::env::split_paths(&path), folder.as_deref())
}

fn resolve_program_name(
    executable: &Path,
    search_path: impl Iterator<Item = PathBuf>,
    current_folder: Option<&Path>,
) -> String {
    if let Some(name) = executable.file_name() {
        let first = search_path
            .map(|place| place.join(name))
            .find(|file| file.is_file());
        let same = |file: &Path| file.canonicalize().ok() == executable.canonicalize().ok();
        if first.is_some_and(|file| same(&file)) {
            return shell_quote(&name.to_string_lossy());
        }
    }
    match current_folder.and_then(|folder| executable.strip_prefix(folder).ok()) {
        Some(below) => shell_quote(&Path::new(".").join(below).to_string_lossy()),
        None => shell_quote(&executable.to_string_lossy()),
    }
}

/// Quotes a text so that a POSIX shell takes it literally.
pub fn shell_quote(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn quoted_words_are_taken_as_written() {
        for (text, expected) in [
            ("https://a.example/x", "https://a.example/x"),
            ("two words", "'two words'"),
            ("'; $(id) <script>", r"''\''; $(id) <script>'"),
            ("", "''"),
            ("naïve", "'naïve'"),
        ] {
            assert_eq!(shell_quote(text), expected);
            let echoed = std::process::Command::new("sh")
                .arg("-c")
                .arg(format!("printf %s {expected}"))
                .output()
                .unwrap();
            assert_eq!(echoed.stdout, text.as_bytes());
        }
    }

    #[test]
    fn the_name_is_enough_only_where_the_path_leads_to_this_file() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        let other = folder.path().join("other");
        for place in [&bin, &other] {
            std::fs::create_dir(place).unwrap();
            std::fs::write(place.join("a2a-registry"), b"").unwrap();
        }
        let this = bin.join("a2a-registry");
        let word = |path: &[&PathBuf]| {
            resolve_program_name(
                &this,
                path.iter().map(|place| (*place).clone()),
                Some(folder.path()),
            )
        };
        assert_eq!(word(&[&bin, &other]), "a2a-registry");
        assert_eq!(word(&[&other, &bin]), "./bin/a2a-registry");
        assert_eq!(word(&[]), "./bin/a2a-registry");
        assert_eq!(
            resolve_program_name(&this, std::iter::empty(), Some(&other)),
            this.to_string_lossy()
        );
    }
}
