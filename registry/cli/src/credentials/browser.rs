//! Opens the user's browser, where that was asked for.

use std::process::{Command, Stdio};

use url::Url;

/// Opens an http or https address in the user's browser.
pub(super) fn open_browser(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it is no address of a page".to_owned());
    }
    let (program, fixed_arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(fixed_arguments).arg(url.as_str());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The browser has no use for the secrets of this command.
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.to_string_lossy().starts_with("A2A_")) {
        command.env_remove(name);
    }
    // It may go on for as long as the browser is open.
    let started = command.spawn();
    started
        .map(drop)
        .map_err(|error| format!("{program}: {error}"))
}
