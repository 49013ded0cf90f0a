//! The credentials that a user gives for one command.

use std::path::{Path, PathBuf};

use a2a_card::AgentCard;
use a2a_client::choice::{takes_key, takes_token};
use a2a_client::{BasicLogin, ClientCertificate};
use clap::Args;

use super::secret::{SecretPlaces, ask_hidden, read_private};
use crate::failure::Failure;
use crate::terminal;

/// The variable of a token.
const TOKEN: &str = "A2A_AGENT_TOKEN";
/// The variable of an API key.
const KEY: &str = "A2A_AGENT_KEY";
/// Most bytes of a certificate with its chain, and of a key.
const PEM_LIMIT: u64 = 256 * 1024;

/// Credentials on the command line.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Credentials")]
pub(crate) struct CredentialArgs {
    /// A token that the agent requires: `@FILE`, `@-` for standard input, or the token itself, which other users of this
    /// machine can see (or in `A2A_AGENT_TOKEN`)
    #[arg(long, value_name = "@FILE|TOKEN")]
    bearer: Option<String>,
    /// An API key that the agent requires, given like a token; it is sent in the place that the card names
    /// (or in `A2A_AGENT_KEY`)
    #[arg(long, value_name = "@FILE|KEY")]
    api_key: Option<String>,
    /// The user of HTTP Basic; the password is asked for
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
    /// A further header for the agent
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
}

/// Credentials as they were read.
#[derive(Default)]
pub(crate) struct GivenCredentials {
    pub bearer: Option<String>,
    pub api_key: Option<String>,
    pub basic: Option<BasicLogin>,
    /// A certificate with its key.
    pub certificate: Option<ClientCertificate>,
    pub headers: Vec<(String, String)>,
    /// Whether the token comes from a variable, which is set for all agents alike.
    pub is_token_of_variable: bool,
    /// Whether the key does.
    pub is_key_of_variable: bool,
}

impl GivenCredentials {
    /// Leaves out what comes from a variable and this card has no use for, and says so.
    pub fn ignore_needless_variables(&mut self, card: &AgentCard) {
        if self.is_token_of_variable && !takes_token(card) && self.bearer.take().is_some() {
            terminal::note(&format!("{TOKEN} is ignored: the card asks for no token"));
        }
        if self.is_key_of_variable && !takes_key(card) && self.api_key.take().is_some() {
            terminal::note(&format!(
                "{KEY} is ignored: the card names no place for an API key"
            ));
        }
    }
}

impl CredentialArgs {
    /// Reads the files and variables, and asks for a password that is nowhere.
    pub fn read(&self) -> Result<GivenCredentials, Failure> {
        let certificate = match (&self.cert, &self.key) {
            (Some(chain), Some(key)) => Some(certificate(chain, key)?),
            _ => None,
        };
        Ok(GivenCredentials {
            bearer: self.token().read()?.map(|secret| secret.0),
            api_key: self.api_key().read()?.map(|secret| secret.0),
            basic: self.login()?,
            certificate,
            headers: self.header.clone(),
            is_token_of_variable: self.bearer.is_none(),
            is_key_of_variable: self.api_key.is_none(),
        })
    }

    /// Like [`Self::read`], without tokens and keys that only a variable has: nobody asked to keep these.
    pub fn read_typed(&self) -> Result<GivenCredentials, Failure> {
        let mut read = self.read()?;
        read.bearer = read.bearer.filter(|_| !read.is_token_of_variable);
        read.api_key = read.api_key.filter(|_| !read.is_key_of_variable);
        Ok(read)
    }

    /// Says once which secrets others can see in the list of processes.
    pub fn warn(&self) {
        let places = [self.token(), self.api_key(), self.password()];
        let exposed = places.iter().filter(|places| places.is_exposed());
        let mut exposed: Vec<&str> = exposed.map(|places| places.flag).collect();
        if self.header.iter().any(|(name, _)| is_secret(name)) {
            exposed.push("--header");
        }
        if exposed.is_empty() {
            return;
        }
        let advice = match exposed.iter().all(|flag| *flag == "--header") {
            true => "keep it with `credentials add`, or use --bearer @FILE or --api-key @FILE",
            false => "use @FILE, the variable that --help names, or `credentials add`",
        };
        terminal::note(&format!(
            "warning: {} on the command line is visible to other users of this machine; {advice}",
            exposed.join(" and ")
        ));
    }

    /// The certificate's files, if they were given.
    pub fn certificate_files(&self) -> Option<(&Path, &Path)> {
        Some((self.cert.as_deref()?, self.key.as_deref()?))
    }

    /// Whether anything was given on the command line that can be kept.
    pub fn is_given(&self) -> bool {
        let secrets = [&self.bearer, &self.api_key, &self.basic];
        secrets.iter().any(|given| given.is_some()) || self.cert.is_some()
    }

    /// Whether a header was given.
    pub fn has_header(&self) -> bool {
        !self.header.is_empty()
    }

    fn token(&self) -> SecretPlaces<'_> {
        SecretPlaces {
            flag: "--bearer",
            given: self.bearer.as_deref(),
            variable: TOKEN,
        }
    }

    fn api_key(&self) -> SecretPlaces<'_> {
        SecretPlaces {
            flag: "--api-key",
            given: self.api_key.as_deref(),
            variable: KEY,
        }
    }

    fn password(&self) -> SecretPlaces<'_> {
        SecretPlaces {
            flag: "--password",
            given: self.password.as_deref(),
            variable: "A2A_AGENT_PASSWORD",
        }
    }

    fn login(&self) -> Result<Option<BasicLogin>, Failure> {
        let Some(user) = &self.basic else {
            return Ok(None);
        };
        if user.contains(':') {
            return Err(Failure::new(
                "--basic takes the user alone: give the password with --password @FILE or in A2A_AGENT_PASSWORD",
            ));
        }
        let password = match self.password().read()? {
            Some(password) => password,
            None => ask_hidden(
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

/// A certificate and its key from their files.
///
/// # Errors
/// Where one cannot be read, or others can read the key.
pub(super) fn certificate(chain: &Path, key: &Path) -> Result<ClientCertificate, Failure> {
    let wrong = |what: &str, path: &Path, reason: String| {
        Failure::new(format!("{what} {}: {reason}", path.display()))
    };
    let read = |path: &Path| match std::fs::metadata(path) {
        Ok(file) if file.len() > PEM_LIMIT => Err(format!("it is longer than {PEM_LIMIT} bytes")),
        _ => std::fs::read(path).map_err(|error| format!("it cannot be read: {error}")),
    };
    Ok(ClientCertificate {
        chain: read(chain).map_err(|reason| wrong("--cert", chain, reason))?,
        key: read_private(key, PEM_LIMIT).map_err(|reason| wrong("--key", key, reason))?,
    })
}

/// Whether a header of that name is likely to be a secret.
fn is_secret(name: &str) -> bool {
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

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| "a header is written as 'NAME: VALUE'".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_split_at_the_first_colon() {
        assert_eq!(
            header("X-Time: 12:30"),
            Ok(("X-Time".into(), "12:30".into()))
        );
        assert!(header("no header").is_err());
    }

    #[test]
    fn headers_with_secrets_are_known_by_their_names() {
        for name in ["Authorization", "X-API-Key", "cookie", "X-Auth-Token"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["X-Time", "A2A-Version", "accept"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
