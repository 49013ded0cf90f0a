//! Migrations that record the oldest version of the program that can run on the schema after them.

use sea_orm_migration::prelude::*;

/// The table of the records. Versions that do not know a migration read it, so it never changes.
const TABLE: &str = "schema_compatibility";

/// A migration with the oldest version of the program that can run on the schema after it. Every migration since the
/// first release is one.
pub struct CompatibleMigration {
    pub migration: Box<dyn MigrationTrait>,
    /// A version as in a manifest. For a migration that only adds, it is the first version of all; for one that
    /// removes, the first version that uses nothing of what is removed.
    pub min_version: &'static str,
}

impl MigrationName for CompatibleMigration {
    fn name(&self) -> &str {
        self.migration.name()
    }
}

#[async_trait::async_trait]
impl MigrationTrait for CompatibleMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        self.migration.up(manager).await?;
        let record = Query::insert()
            .into_table(TABLE)
            .columns(["migration", "min_version"])
            .values_panic([self.name().into(), self.min_version.into()])
            .take();
        manager.execute(record).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let record = Query::delete()
            .from_table(TABLE)
            .and_where(Expr::col("migration").eq(self.name()))
            .take();
        manager.execute(record).await?;
        self.migration.down(manager).await
    }

    /// In a transaction on SQLite too, so that a crash leaves neither half of a migration nor one without its record.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
