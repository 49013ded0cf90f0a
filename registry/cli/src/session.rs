//! `session`: sign-in sessions of the web pages.

use a2a_registry_api::Session;
use clap::Subcommand;
use serde_json::json;
use uuid::Uuid;

use super::client::Client;
use super::command_error::CommandResult;
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};

/// Subcommands of `session`.
#[derive(Subcommand, Debug, Clone)]
pub enum SessionCommand {
    /// List your sessions, newest first; an admin sees all sessions
    List(PageArgs),
    /// Revoke a session
    Revoke {
        /// The session's id
        id: Uuid,
    },
}

pub async fn run_session_command(
    command: &SessionCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match command {
        SessionCommand::List(page) => list_sessions(page, client, console).await,
        SessionCommand::Revoke { id } => {
            client.revoke_session(*id).await?;
            console.print_result(&json!({ "revoked": id }), || {
                console.print_line(&format!("{id} is revoked"))
            })
        }
    }
}

async fn list_sessions(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.sessions(page).await?;
    let list_format = ListFormat {
        command: "session list",
        limit: page.limit,
        header: [
            "ID",
            "ACCOUNT",
            "BROWSER",
            "SIGNED IN WITH",
            "BEGAN",
            "LAST SEEN",
            "ENDS",
        ],
        empty_message: "there are no sessions",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.sessions, next, |session| {
        [
            session.id.to_string(),
            session.account.clone(),
            session.browser.clone(),
            sign_in_method(session),
            session.created_at.to_readable(),
            session.last_seen_at.to_readable(),
            session.expires_at.to_readable(),
        ]
    })
}

fn sign_in_method(session: &Session) -> String {
    match (&session.issuer, session.token) {
        (Some(issuer), _) => issuer.clone(),
        (None, Some(token)) => format!("token {token}"),
        (None, None) => String::new(),
    }
}
