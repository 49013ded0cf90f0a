//! Reviews with their approvals, comments and reports, and approvals that one account has given alone.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("reviews")
            .columns([
                pk_uuid("id"),
                uuid("agent_id"),
                uuid("version_id"),
                uuid_null("previous_version"),
                text_null("change_class"),
                text("state"),
                text_null("submitter"),
                text_null("decider"),
                text_null("reason"),
                big_integer("created_at"),
                big_integer_null("decided_at"),
                text("kind").default("admission").take(),
                uuid_null("assignee"),
                big_integer_null("due_at"),
            ])
            .references("agent_id", "agents")
            .index(["state", "id"])
            .index(["agent_id"]),
        NewTable::new("review_approvals")
            .columns([
                uuid("review_id"),
                uuid("account_id"),
                text("reason"),
                big_integer("at"),
                boolean_null("counted"),
            ])
            .primary_key(["review_id", "account_id"])
            .references("review_id", "reviews")
            .references("account_id", "accounts"),
        NewTable::new("review_comments")
            .columns([
                pk_uuid("id"),
                uuid("review_id"),
                uuid("author_id"),
                text("text"),
                big_integer("at"),
            ])
            .references("review_id", "reviews")
            .references("author_id", "accounts")
            .index(["review_id", "id"]),
        NewTable::new("agent_reports")
            .columns([
                pk_uuid("id"),
                uuid("review_id"),
                uuid_null("account_id"),
                text_null("network"),
                text("reason"),
                text_null("contact"),
                big_integer("at"),
            ])
            .references("review_id", "reviews")
            .references("account_id", "accounts")
            .index(["review_id", "id"])
            .index(["account_id", "at"])
            .index(["network", "at"]),
        NewTable::new("break_glasses")
            .columns([
                pk_uuid("review_id"),
                uuid("agent_id"),
                uuid("account_id"),
                text("asked"),
                uuid("version_id"),
                text("content_digest"),
                text("signing"),
                text("reason"),
                uuid_null("before_version"),
                text("before_holds"),
                text("before_pins"),
                big_integer("at"),
                big_integer("ends_at"),
            ])
            .references("review_id", "reviews")
            .references("agent_id", "agents")
            .references("account_id", "accounts")
            .index(["agent_id"]),
    ]
}
