//! `session`: who is signed in to the pages.

use a2a_registry_api::Session;
use clap::Subcommand;
use uuid::Uuid;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::list::{Listing, PageArgs, ReceivedPage};

/// What `session` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum SessionCommand {
    /// List your sessions, newest first; an admin sees everybody's
    List(PageArgs),
    /// Revoke a session
    Revoke {
        /// The session's id
        id: Uuid,
    },
}

/// Does it, by asking the registry.
///
/// # Errors
/// Where the registry is away or refuses.
pub async fn run(
    command: &SessionCommand,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    match command {
        SessionCommand::List(page) => list(page, client, console).await,
        SessionCommand::Revoke { id } => {
            client.revoke_session(*id).await?;
            if console.json {
                console.json(&serde_json::json!({ "revoked": id }))?;
            } else {
                console.line(&format!("{id} is revoked"))?;
            }
            Ok(CommandOutcome::Done)
        }
    }
}

async fn list(
    page: &PageArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let reply = client
        .sessions(page.limit, page.page_token.as_deref())
        .await?;
    let listing = Listing {
        command: "session list",
        header: &[
            "ID",
            "ACCOUNT",
            "BROWSER",
            "SIGNED IN WITH",
            "BEGAN",
            "LAST SEEN",
            "ENDS",
        ],
        empty: "nobody is signed in",
    };
    let received = ReceivedPage {
        raw: &reply.raw,
        entries: &reply.value.sessions,
        next: reply.value.next_page_token.as_deref(),
    };
    listing.show(console, page, &received, |session| {
        vec![
            session.id.to_string(),
            session.account.clone(),
            session.browser.clone(),
            signed_in_with(session),
            session.created_at.to_readable(),
            session.last_seen_at.to_readable(),
            session.expires_at.to_readable(),
        ]
    })
}

fn signed_in_with(session: &Session) -> String {
    match (&session.issuer, session.token) {
        (Some(issuer), _) => issuer.clone(),
        (None, Some(token)) => format!("token {token}"),
        (None, None) => String::new(),
    }
}
