//! Reviews with their approvals, comments and reports, and break-glass approvals.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn review_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("reviews")
            .column(pk_uuid("id"))
            .foreign_key(uuid("agent_id"), "agents")
            .column(uuid("version_id"))
            .column(uuid_null("previous_version"))
            .column(text_null("change_class"))
            .column(text("state"))
            .column(text_null("submitter"))
            .column(text_null("decider"))
            .column(text_null("reason"))
            .column(big_integer("created_at"))
            .column(big_integer_null("decided_at"))
            .column(text("kind").default("admission").take())
            .column(uuid_null("assignee"))
            .column(big_integer_null("due_at"))
            .index(["state", "id"])
            .index(["agent_id"]),
        NewTable::new("review_approvals")
            .foreign_key(uuid("review_id"), "reviews")
            .foreign_key(uuid("account_id"), "accounts")
            .column(text("reason"))
            .column(big_integer("at"))
            .column(boolean_null("counted"))
            .primary_key(["review_id", "account_id"]),
        NewTable::new("review_comments")
            .column(pk_uuid("id"))
            .foreign_key(uuid("review_id"), "reviews")
            .foreign_key(uuid("author_id"), "accounts")
            .column(text("text"))
            .column(big_integer("at"))
            .index(["review_id", "id"]),
        NewTable::new("agent_reports")
            .column(pk_uuid("id"))
            .foreign_key(uuid("review_id"), "reviews")
            .foreign_key(uuid_null("account_id"), "accounts")
            .column(text_null("network"))
            .column(text("reason"))
            .column(text_null("contact"))
            .column(big_integer("at"))
            .index(["review_id", "id"])
            .index(["account_id", "at"])
            .index(["network", "at"]),
        NewTable::new("break_glasses")
            .foreign_key(pk_uuid("review_id"), "reviews")
            .foreign_key(uuid("agent_id"), "agents")
            .foreign_key(uuid("account_id"), "accounts")
            .column(text("asked"))
            .column(uuid("version_id"))
            .column(text("content_digest"))
            .column(text("signing"))
            .column(text("reason"))
            .column(uuid_null("before_version"))
            .column(text("before_holds"))
            .column(text("before_pins"))
            .column(big_integer("at"))
            .column(big_integer("ends_at"))
            .index(["agent_id"]),
    ]
}
