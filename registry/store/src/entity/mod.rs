//! All tables, without any logic.

mod a2a;
mod accounts;
mod agents;
mod collections;
mod domains;
mod governance;
mod ownership;
mod peer_candidates;
mod policies;
mod reviews;
mod vectors;

pub use a2a::a2a_task;
pub use accounts::{
    account, account_group, group_member, identity, session, setting, sign_in_attempt, token,
    used_attempt,
};
pub use agents::{agent, body, hold, version, version_source, withdrawn_urn};
pub use collections::{collection, feed, saved_search};
pub use domains::{attempt, domain, pace, proof, source, source_day, source_registrant};
pub use governance::{decision, event, review};
pub use ownership::{challenge, enrolled_key, owner_marks, proof_check};
pub use peer_candidates::peer_candidate;
pub use policies::{dry_run_change, policy_set, waiver};
pub use reviews::{agent_report, break_glass, review_approval, review_comment};
pub use vectors::{agent_vectors, model};
