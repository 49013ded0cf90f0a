//! Short definitions of columns and references for all steps.

use sea_orm_migration::prelude::*;

/// A reference to another table's key; a referenced row cannot be deleted.
pub(crate) fn references(
    from_table: &'static str,
    from_column: &'static str,
    to_table: &'static str,
) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("fk_{from_table}_{from_column}"))
        .from(from_table, from_column)
        .to(to_table, "id")
        .on_delete(ForeignKeyAction::Restrict)
        .take()
}

/// An index over these columns, named after them.
pub(crate) fn index(table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut statement = Index::create();
    statement
        .name(format!("ix_{table}_{}", columns.join("_")))
        .table(table);
    for column in columns {
        statement.col(*column);
    }
    statement
}
