//! Opening the user's browser on request.

use std::process::{Command, Stdio};

use url::Url;

/// Opens an http or https address in the user's browser.
pub(crate) fn open_browser(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it is not an http or https URL".to_owned());
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
    // The browser does not need this command's secrets.
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.to_string_lossy().starts_with("A2A_")) {
        command.env_remove(name);
    }
    // The program may run for as long as the browser is open.
    let started = command.spawn();
    started
        .map(drop)
        .map_err(|error| format!("{program}: {error}"))
}
