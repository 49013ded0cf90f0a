//! Where cards are looked for: well-known paths, base URLs and catalogs, as `register`, `lint` and `send` fetch them.

use super::client::assert_printed;
use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::setup::Setup;

const CARD: &str = "/.well-known/agent-card.json";
const OLD: &str = "/.well-known/agent.json";

/// Object stores answer 403 for a file that is missing.
#[tokio::test]
async fn the_older_path_is_found_behind_a_403() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    origin.answer(CARD, OriginReply::status(403));
    origin.answer(OLD, OriginReply::json(card("Bucket", "store")));
    let said = served.run(&["register", &origin.url("")]).await;
    assert_printed(&said, "found Bucket");
}

/// Whoever registers the older path by itself knows where the card is, and the newer one is not asked.
#[tokio::test]
async fn the_older_path_registered_by_itself_is_fetched_itself() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    origin.answer(CARD, OriginReply::status(503));
    origin.answer(OLD, OriginReply::json(card("Elder", "remember")));
    let said = served.run(&["register", &origin.url(OLD)]).await;
    assert_printed(&said, "found Elder");
    assert!(origin.requests(CARD).is_empty());
}
