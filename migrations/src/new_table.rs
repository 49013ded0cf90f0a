//! A table with its references and indexes, and the migration that creates such tables.

use sea_orm_migration::prelude::*;

pub(crate) struct CreateTablesMigration {
    pub(crate) name: &'static str,
    pub(crate) tables: fn() -> Vec<NewTable>,
}

impl MigrationName for CreateTablesMigration {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait::async_trait]
impl MigrationTrait for CreateTablesMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in (self.tables)() {
            manager.create_table(table.statement).await?;
            for index in table.indexes {
                manager.create_index(index).await?;
            }
            for row in table.rows {
                manager.execute(row).await?;
            }
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in (self.tables)().into_iter().rev() {
            let drop = Table::drop().table(table.name).take();
            manager.drop_table(drop).await?;
        }
        Ok(())
    }

    /// In a transaction on SQLite too, so that a crash leaves no half of a migration.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

/// A table to create. Its columns, references and indexes are created in the given order.
pub(crate) struct NewTable {
    name: &'static str,
    statement: TableCreateStatement,
    indexes: Vec<IndexCreateStatement>,
    rows: Vec<InsertStatement>,
}

impl NewTable {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            statement: Table::create().table(name).take(),
            indexes: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn column(mut self, column: ColumnDef) -> Self {
        self.statement.col(column);
        self
    }

    /// A foreign key to another table's `id`; a referenced row cannot be deleted.
    pub(crate) fn foreign_key(mut self, column: ColumnDef, table: &'static str) -> Self {
        let name = column.get_column_name();
        let mut key = ForeignKey::create();
        key.name(format!("fk_{}_{name}", self.name))
            .from(self.name, name)
            .to(table, "id")
            .on_delete(ForeignKeyAction::Restrict);
        self.statement.foreign_key(&mut key);
        self.column(column)
    }

    pub(crate) fn primary_key(mut self, columns: impl IntoIterator<Item = &'static str>) -> Self {
        let mut key = Index::create();
        for column in columns {
            key.col(column);
        }
        self.statement.primary_key(&mut key);
        self
    }

    /// An index over these columns, named after them.
    pub(crate) fn index<const N: usize>(self, columns: [&'static str; N]) -> Self {
        let name = format!("ix_{}_{}", self.name, columns.join("_"));
        self.add_index(name, columns, |_| ())
    }

    pub(crate) fn unique_index<const N: usize>(self, columns: [&'static str; N]) -> Self {
        let name = format!("ix_{}_{}", self.name, columns.join("_"));
        self.add_index(name, columns, |index| {
            index.unique();
        })
    }

    pub(crate) fn partial_index<const N: usize>(
        self,
        name: &'static str,
        columns: [&'static str; N],
        conditions: impl IntoIterator<Item = Expr>,
    ) -> Self {
        self.add_index(name, columns, |index| {
            for condition in conditions {
                index.and_where(condition);
            }
        })
    }

    pub(crate) fn unique_partial_index<const N: usize>(
        self,
        name: &'static str,
        columns: [&'static str; N],
        condition: Expr,
    ) -> Self {
        self.add_index(name, columns, |index| {
            index.unique().and_where(condition);
        })
    }

    /// Inserts a row when the table is created.
    pub(crate) fn initial_row(mut self, row: InsertStatement) -> Self {
        self.rows.push(row);
        self
    }

    fn add_index<const N: usize>(
        mut self,
        name: impl Into<String>,
        columns: [&'static str; N],
        configure: impl FnOnce(&mut IndexCreateStatement),
    ) -> Self {
        let mut index = Index::create();
        index.name(name).table(self.name);
        for column in columns {
            index.col(column);
        }
        configure(&mut index);
        self.indexes.push(index);
        self
    }
}
