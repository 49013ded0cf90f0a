//! The baseline: SQLite's full-text search over the texts of the same cards.

use a2a_card::AgentCard;
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement};

/// A table with one row per card.
pub struct Fts5Table(DatabaseConnection);

impl Fts5Table {
    pub async fn from_cards(cards: &[Vec<u8>]) -> Self {
        let database = Database::connect("sqlite::memory:").await.unwrap();
        let table = Self(database);
        table
            .execute(
                "CREATE VIRTUAL TABLE cards USING fts5 \
                 (name UNINDEXED, body, tokenize = 'porter unicode61')",
                [],
            )
            .await;
        for bytes in cards {
            let card = a2a_card::parse_card(bytes).unwrap().card;
            let body = searched_text(&card);
            table
                .execute("INSERT INTO cards VALUES (?, ?)", [card.name, body])
                .await;
        }
        table
    }

    /// The names of the cards that contain any of the words, in the order of `bm25`.
    pub async fn search(&self, query: &str, most: usize) -> Vec<String> {
        let words: Vec<String> = query
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| format!("\"{word}\""))
            .collect();
        if words.is_empty() {
            return Vec::new();
        }
        let statement = Statement::from_sql_and_values(
            DbBackend::Sqlite,
            format!("SELECT name FROM cards WHERE cards MATCH ? ORDER BY bm25(cards) LIMIT {most}"),
            [words.join(" OR ").into()],
        );
        let rows = self.0.query_all_raw(statement).await.unwrap();
        rows.iter()
            .map(|row| row.try_get("", "name").unwrap())
            .collect()
    }

    async fn execute<const N: usize>(&self, statement: &str, values: [String; N]) {
        let values = values.map(sea_orm::Value::from);
        let statement = Statement::from_sql_and_values(DbBackend::Sqlite, statement, values);
        self.0.execute_raw(statement).await.unwrap();
    }
}

/// All searched texts of a card.
pub fn searched_text(card: &AgentCard) -> String {
    let mut texts = vec![card.name.clone()];
    texts.extend(card.description.clone());
    texts.extend(
        card.provider
            .iter()
            .flat_map(|provider| provider.organization.clone()),
    );
    for skill in &card.skills {
        texts.extend([skill.id.clone(), skill.name.clone()]);
        texts.extend(skill.description.clone());
        texts.extend(skill.tags.iter().chain(&skill.examples).cloned());
    }
    texts.join("\n")
}
