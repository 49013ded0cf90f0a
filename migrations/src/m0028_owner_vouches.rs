//! The account that an admin vouches for as owner of a host that cannot be proved.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::index;

/// The owner vouch of a domain: for which account, since and until when, by whom and why.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite cannot add two at once.
fn columns() -> [(&'static str, ColumnDef); 5] {
    [
        ("vouched_owner", uuid_null("vouched_owner")),
        ("vouched_since", big_integer_null("vouched_since")),
        ("vouched_until", big_integer_null("vouched_until")),
        ("vouched_by", text_null("vouched_by")),
        ("vouched_reason", text_null("vouched_reason")),
    ]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (_, mut definition) in columns() {
            let alter = Table::alter()
                .table("domains")
                .add_column(&mut definition)
                .take();
            manager.alter_table(alter).await?;
        }
        // Each check of a proof asks which hosts have such an owner, and few have.
        manager
            .create_index(index("domains", &["vouched_owner"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut index = Index::drop();
        index.name("ix_domains_vouched_owner").table("domains");
        manager.drop_index(index).await?;
        for (name, _) in columns() {
            let alter = Table::alter().table("domains").drop_column(name).take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }
}
