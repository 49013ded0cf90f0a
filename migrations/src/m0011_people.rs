//! Roles as sets, disabled accounts, scopes and last use of tokens, and groups. An admin of before may go on approving; a
//! token of before that never ended now ends in a year, but for the one of the bootstrap.

use sea_orm_migration::sea_orm::DbBackend;
use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// Accounts, tokens and groups.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// A year in microseconds.
const YEAR: i64 = 365 * 24 * 3600 * 1_000_000;

/// The new columns, one statement each: SQLite cannot add two at once.
fn columns() -> [(&'static str, &'static str, ColumnDef); 4] {
    [
        ("accounts", "roles", text_null("roles")),
        ("accounts", "disabled_at", big_integer_null("disabled_at")),
        ("tokens", "scopes", text_null("scopes")),
        ("tokens", "last_used_at", big_integer_null("last_used_at")),
    ]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, _, mut definition) in columns() {
            let alter = Table::alter()
                .table(table)
                .add_column(&mut definition)
                .take();
            manager.alter_table(alter).await?;
        }
        for (role, roles) in [
            ("admin", "curator,admin"),
            ("curator", "curator"),
            ("publisher", "publisher"),
        ] {
            let update = Query::update()
                .table("accounts")
                .value("roles", roles)
                .and_where(Expr::col("role").eq(role))
                .take();
            manager.execute(update).await?;
        }
        let update = Query::update()
            .table("tokens")
            .value("expires_at", in_a_year(manager.get_database_backend()))
            .and_where(Expr::col("expires_at").is_null())
            .and_where(Expr::col("bootstrap").eq(false))
            .take();
        manager.execute(update).await?;
        manager
            .create_index(index("tokens", &["account_id"]))
            .await?;
        groups(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["group_members", "account_groups"] {
            let drop = Table::drop().table(table).take();
            manager.drop_table(drop).await?;
        }
        let drop = Index::drop()
            .name("ix_tokens_account_id")
            .table("tokens")
            .to_owned();
        manager.drop_index(drop).await?;
        for (table, name, _) in columns() {
            let alter = Table::alter().table(table).drop_column(name).take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }
}

async fn groups(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let groups = Table::create()
        .table("account_groups")
        .col(pk_uuid("id"))
        .col(text("origin"))
        .col(text("name"))
        .col(big_integer("created_at"))
        .take();
    manager.create_table(groups).await?;
    let mut unique = index("account_groups", &["origin", "name"]);
    manager.create_index(unique.unique().to_owned()).await?;
    let members = Table::create()
        .table("group_members")
        .col(uuid("group_id"))
        .col(uuid("account_id"))
        .primary_key(Index::create().col("group_id").col("account_id"))
        .foreign_key(&mut references(
            "group_members",
            "group_id",
            "account_groups",
        ))
        .foreign_key(&mut references("group_members", "account_id", "accounts"))
        .take();
    manager.create_table(members).await?;
    manager
        .create_index(index("group_members", &["account_id"]))
        .await
}

/// The end of a token without one, by the clock of the database, in microseconds since 1970.
fn in_a_year(backend: DbBackend) -> Expr {
    let seconds = match backend {
        DbBackend::Postgres => "CAST(extract(epoch FROM now()) AS BIGINT)",
        _ => "CAST(strftime('%s', 'now') AS INTEGER)",
    };
    Expr::cust(format!("{seconds} * 1000000 + {YEAR}"))
}
