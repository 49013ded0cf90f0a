//! Credentials that a user gives for one command.

use std::path::{Path, PathBuf};

use a2a_card::AgentCard;
use a2a_client::route_selection::{card_accepts_api_key, card_accepts_token};
use a2a_client::{BasicLogin, ClientCertificate};
use clap::Args;

use super::secret::{SecretSources, prompt_hidden, read_private_file};
use crate::command_error::CommandError;
use crate::terminal;

/// Environment variable for a token.
const TOKEN_VARIABLE: &str = "A2A_AGENT_TOKEN";
/// Environment variable for an API key.
const API_KEY_VARIABLE: &str = "A2A_AGENT_KEY";
/// Size limit for a certificate with its chain, and for a key, in bytes.
const MAX_PEM_BYTES: u64 = 256 * 1024;

/// Credentials on the command line.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Credentials")]
pub(crate) struct CredentialArgs {
    /// A token that the agent requires: `@FILE`, `@-` for standard input, or the token itself, which other users of
    /// this machine can see (or in `A2A_AGENT_TOKEN`)
    #[arg(long, value_name = "@FILE|TOKEN")]
    bearer: Option<String>,
    /// An API key that the agent requires, given like a token; it is sent where the card specifies (or in
    /// `A2A_AGENT_KEY`)
    #[arg(long, value_name = "@FILE|KEY")]
    api_key: Option<String>,
    /// User name for HTTP Basic; the password is prompted for
    #[arg(long, value_name = "USER")]
    basic: Option<String>,
    /// The password of `--basic`, given like a token (or in `A2A_AGENT_PASSWORD`)
    #[arg(long, value_name = "@FILE|PASSWORD", requires = "basic")]
    password: Option<String>,
    /// A client certificate with its chain, in PEM, for agents that require mutual TLS
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of the certificate, in PEM; only you may be able to read it
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// An additional header for the agent
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_header)]
    header: Vec<(String, String)>,
}

/// Credentials after files, variables and prompts were read.
#[derive(Default)]
pub(crate) struct ParsedCredentials {
    pub bearer: Option<String>,
    pub api_key: Option<String>,
    pub basic: Option<BasicLogin>,
    /// A certificate with its key.
    pub certificate: Option<ClientCertificate>,
    pub headers: Vec<(String, String)>,
    /// Whether the token comes from a variable, which applies to all agents.
    pub is_token_from_variable: bool,
    /// Whether the API key comes from a variable.
    pub is_key_from_variable: bool,
}

impl ParsedCredentials {
    /// Drops credentials from variables that this card does not need, with a note.
    pub fn drop_unneeded_credentials(&mut self, card: &AgentCard) {
        if self.is_token_from_variable && !card_accepts_token(card) && self.bearer.take().is_some()
        {
            terminal::eprint_note(&format!(
                "{TOKEN_VARIABLE} is ignored: the card requires no token"
            ));
        }
        if self.is_key_from_variable && !card_accepts_api_key(card) && self.api_key.take().is_some()
        {
            terminal::eprint_note(&format!(
                "{API_KEY_VARIABLE} is ignored: the card does not say where to send an API key"
            ));
        }
    }
}

impl CredentialArgs {
    /// Reads the files and variables, and prompts for a missing password.
    pub fn resolve(&self) -> Result<ParsedCredentials, CommandError> {
        let certificate = match (&self.cert, &self.key) {
            (Some(chain), Some(key)) => Some(read_certificate(chain, key)?),
            _ => None,
        };
        Ok(ParsedCredentials {
            bearer: self.token_sources().read()?.map(|secret| secret.0),
            api_key: self.api_key_sources().read()?.map(|secret| secret.0),
            basic: self.read_login()?,
            certificate,
            headers: self.header.clone(),
            is_token_from_variable: self.bearer.is_none(),
            is_key_from_variable: self.api_key.is_none(),
        })
    }

    /// Like [`Self::resolve`], without tokens and keys from variables, which were not given to be stored.
    pub fn resolve_flags_only(&self) -> Result<ParsedCredentials, CommandError> {
        let mut read = self.resolve()?;
        read.bearer = read.bearer.filter(|_| !read.is_token_from_variable);
        read.api_key = read.api_key.filter(|_| !read.is_key_from_variable);
        Ok(read)
    }

    /// Warns once about secrets that others can see in the list of processes.
    pub fn warn_about_exposure(&self) {
        let sources = [
            self.token_sources(),
            self.api_key_sources(),
            self.password_sources(),
        ];
        let exposed = sources.iter().filter(|places| places.is_exposed());
        let mut exposed_flags: Vec<&str> = exposed.map(|places| places.flag).collect();
        if self.header.iter().any(|(name, _)| is_secret_header(name)) {
            exposed_flags.push("--header");
        }
        if exposed_flags.is_empty() {
            return;
        }
        let advice = match exposed_flags.iter().all(|flag| *flag == "--header") {
            true => "store it with `credentials add`, or use --bearer @FILE or --api-key @FILE",
            false => "use @FILE, the variable that --help names, or `credentials add`",
        };
        terminal::eprint_note(&format!(
            "warning: {} on the command line is visible to other users of this machine; {advice}",
            exposed_flags.join(" and ")
        ));
    }

    /// Files of the certificate and its key, if given.
    pub fn certificate_files(&self) -> Option<(&Path, &Path)> {
        Some((self.cert.as_deref()?, self.key.as_deref()?))
    }

    /// Whether the command line has any credentials that can be stored.
    pub fn has_storable_credentials(&self) -> bool {
        let secrets = [&self.bearer, &self.api_key, &self.basic];
        secrets.iter().any(|given| given.is_some()) || self.cert.is_some()
    }

    /// Whether a header was given.
    pub fn has_header(&self) -> bool {
        !self.header.is_empty()
    }

    fn token_sources(&self) -> SecretSources<'_> {
        SecretSources {
            flag: "--bearer",
            flag_value: self.bearer.as_deref(),
            variable: TOKEN_VARIABLE,
        }
    }

    fn api_key_sources(&self) -> SecretSources<'_> {
        SecretSources {
            flag: "--api-key",
            flag_value: self.api_key.as_deref(),
            variable: API_KEY_VARIABLE,
        }
    }

    fn password_sources(&self) -> SecretSources<'_> {
        SecretSources {
            flag: "--password",
            flag_value: self.password.as_deref(),
            variable: "A2A_AGENT_PASSWORD",
        }
    }

    fn read_login(&self) -> Result<Option<BasicLogin>, CommandError> {
        let Some(user) = &self.basic else {
            return Ok(None);
        };
        if user.contains(':') {
            return Err(CommandError::new(
                "--basic takes only the user name: give the password with --password @FILE or in A2A_AGENT_PASSWORD",
            ));
        }
        let password = match self.password_sources().read()? {
            Some(password) => password,
            None => prompt_hidden(
                &format!("Password of {user}"),
                "give it with --password @FILE or in A2A_AGENT_PASSWORD",
            )?,
        };
        Ok(Some(BasicLogin {
            user: user.clone(),
            password: password.0,
        }))
    }
}

/// Reads a certificate and its key from their files.
///
/// # Errors
/// If one cannot be read, or others can read the key.
pub(super) fn read_certificate(
    chain: &Path,
    key: &Path,
) -> Result<ClientCertificate, CommandError> {
    let file_error = |what: &str, path: &Path, reason: String| {
        CommandError::new(format!("{what} {}: {reason}", path.display()))
    };
    let read = |path: &Path| match std::fs::metadata(path) {
        Ok(file) if file.len() > MAX_PEM_BYTES => {
            Err(format!("it is longer than {MAX_PEM_BYTES} bytes"))
        }
        _ => std::fs::read(path).map_err(|error| format!("it cannot be read: {error}")),
    };
    Ok(ClientCertificate {
        chain: read(chain).map_err(|reason| file_error("--cert", chain, reason))?,
        key: read_private_file(key, MAX_PEM_BYTES)
            .map_err(|reason| file_error("--key", key, reason))?,
    })
}

/// Whether a header of that name is probably a secret.
fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "authorization",
        "cookie",
        "key",
        "token",
        "secret",
        "password",
    ]
    .iter()
    .any(|word| name.contains(word))
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| "a header must have the form 'NAME: VALUE'".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_split_at_the_first_colon() {
        assert_eq!(
            parse_header("X-Time: 12:30"),
            Ok(("X-Time".into(), "12:30".into()))
        );
        assert!(parse_header("no header").is_err());
    }

    #[test]
    fn headers_with_secrets_are_known_by_their_names() {
        for name in ["Authorization", "X-API-Key", "cookie", "X-Auth-Token"] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in ["X-Time", "A2A-Version", "accept"] {
            assert!(!is_secret_header(name), "{name}");
        }
    }
}
