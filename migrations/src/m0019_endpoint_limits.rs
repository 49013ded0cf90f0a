//! What limits endpoint checks: the site of each host, and an index of the leases, which each lease of a visit counts.

use sea_orm_migration::{prelude::*, schema::*};

const TABLE: &str = "endpoint_hosts";
const SITE: &str = "site";
const SITE_INDEX: &str = "ix_endpoint_hosts_site";
const LEASE_INDEX: &str = "ix_endpoint_hosts_leased_until";

pub(crate) struct EndpointLimitsMigration;

impl MigrationName for EndpointLimitsMigration {
    fn name(&self) -> &'static str {
        "m0019_endpoint_limits"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for EndpointLimitsMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let site = text(SITE).default("").take();
        let add = Table::alter().table(TABLE).add_column(site).take();
        manager.alter_table(add).await?;
        for (name, column) in [(SITE_INDEX, SITE), (LEASE_INDEX, "leased_until")] {
            let index = Index::create().name(name).table(TABLE).col(column).take();
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for name in [LEASE_INDEX, SITE_INDEX] {
            let drop = Index::drop().name(name).table(TABLE).to_owned();
            manager.drop_index(drop).await?;
        }
        let drop = Table::alter().table(TABLE).drop_column(SITE).take();
        manager.alter_table(drop).await
    }
}
