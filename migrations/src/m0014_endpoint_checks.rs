//! Endpoint checks: addresses with their results and hosts, what owners and admins permit, and each agent's state.

use sea_orm_migration::{prelude::*, schema::*};

use crate::new_table::{CreateTablesMigration, NewTable};

const AGENT_INDEX: &str = "ix_agents_endpoint_check_id";

pub(crate) struct EndpointChecksMigration;

impl MigrationName for EndpointChecksMigration {
    fn name(&self) -> &str {
        "m0014_endpoint_checks"
    }
}

fn create_tables() -> CreateTablesMigration {
    CreateTablesMigration {
        name: "m0014_endpoint_checks",
        tables: endpoint_tables,
    }
}

fn endpoint_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("endpoint_hosts")
            .column(text("origin").primary_key().take())
            .column(big_integer_null("due_at"))
            .column(big_integer("not_before"))
            .column(big_integer_null("lease"))
            .column(big_integer_null("leased_until"))
            .column(text_null("network"))
            .column(big_integer("created_at"))
            .index(["due_at"]),
        NewTable::new("endpoint_checks")
            .column(big_pk_auto("id"))
            .column(text("key"))
            .column(text("origin"))
            .column(text("form"))
            .column(text("url"))
            .column(text_null("tenant"))
            .column(big_integer("due_at"))
            .column(text("state"))
            .column(text_null("reason"))
            .column(text_null("auth_scheme"))
            .column(integer_null("status"))
            .column(integer_null("elapsed_ms"))
            .column(big_integer_null("checked_at"))
            .column(big_integer_null("answered_at"))
            .unique_index(["key"])
            .index(["origin", "due_at"]),
        NewTable::new("endpoint_days")
            .foreign_key(big_integer("check_id"), "endpoint_checks")
            .column(integer("day"))
            .column(text("state"))
            .column(integer("elapsed_ms"))
            .primary_key(["check_id", "day"]),
        NewTable::new("endpoint_permissions")
            .foreign_key(big_integer("domain_id").primary_key().take(), "domains")
            .column(boolean("checks_off"))
            .column(big_integer_null("vouched_generation"))
            .column(text_null("vouched_by"))
            .column(big_integer_null("vouched_at"))
            .column(text_null("vouched_reason")),
    ]
}

fn agent_columns() -> [ColumnDef; 4] {
    [
        text("endpoint").default("not_checked").take(),
        big_integer_null("endpoint_check_id"),
        big_integer_null("endpoint_checked_at"),
        big_integer_null("endpoint_answered_at"),
    ]
}

#[async_trait::async_trait]
impl MigrationTrait for EndpointChecksMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create_tables().up(manager).await?;
        // SQLite adds one column at a time.
        for column in agent_columns() {
            let change = Table::alter().table("agents").add_column(column).to_owned();
            manager.alter_table(change).await?;
        }
        let index = Index::create()
            .name(AGENT_INDEX)
            .table("agents")
            .col("endpoint_check_id")
            .to_owned();
        manager.create_index(index).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let index = Index::drop().name(AGENT_INDEX).table("agents").to_owned();
        manager.drop_index(index).await?;
        for column in agent_columns() {
            let change = Table::alter()
                .table("agents")
                .drop_column(column.get_column_name())
                .to_owned();
            manager.alter_table(change).await?;
        }
        create_tables().down(manager).await
    }
}
