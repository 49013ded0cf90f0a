//! URNs under a company's authority, of agents whose host cannot be proved. They stay when an agent gets its own.

use sea_orm_migration::{prelude::*, schema::*};

const TABLE: &str = "agents";
const URN_INDEX: &str = "ux_agents_authority_urn";
const AUTHORITY_INDEX: &str = "ix_agents_authority";

pub(crate) struct AuthorityUrnsMigration;

impl MigrationName for AuthorityUrnsMigration {
    fn name(&self) -> &'static str {
        "m0012_authority_urns"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for AuthorityUrnsMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite adds one column per statement.
        for column in ["authority", "authority_urn"] {
            let add = Table::alter()
                .table(TABLE)
                .add_column(text_null(column))
                .take();
            manager.alter_table(add).await?;
        }
        let unique = Index::create()
            .name(URN_INDEX)
            .table(TABLE)
            .col("authority_urn")
            .unique()
            .take();
        manager.create_index(unique).await?;
        let authorities = Index::create()
            .name(AUTHORITY_INDEX)
            .table(TABLE)
            .col("authority")
            .take();
        manager.create_index(authorities).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for index in [AUTHORITY_INDEX, URN_INDEX] {
            let drop = Index::drop().name(index).table(TABLE).to_owned();
            manager.drop_index(drop).await?;
        }
        for column in ["authority_urn", "authority"] {
            let drop = Table::alter().table(TABLE).drop_column(column).take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }

    /// In a transaction on SQLite too, so that a crash leaves no half of a migration.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
