//! Tasks for later requests, and the identifiers that an agent issues.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Number of stored tasks; a new one replaces the oldest.
pub(super) const MAX_TASKS: usize = 200;

#[derive(Debug, Default)]
pub(super) struct TaskStore {
    tasks: Mutex<VecDeque<Value>>,
    last_number: AtomicU64,
}

impl TaskStore {
    /// A unique identifier, such as `task-7`.
    pub fn next_id(&self, what: &str) -> String {
        format!(
            "{what}-{}",
            self.last_number.fetch_add(1, Ordering::Relaxed) + 1
        )
    }

    pub fn insert(&self, task: Value) {
        let mut kept = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MAX_TASKS {
            kept.pop_front();
        }
        kept.push_back(task);
    }

    pub fn get(&self, id: &str) -> Option<Value> {
        let kept = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter()
            .find(|task| task.get("id").and_then(Value::as_str) == Some(id))
            .cloned()
    }

    pub fn tasks_newest_first(&self) -> Vec<Value> {
        let kept = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_task_makes_room() {
        let tasks = TaskStore::default();
        for n in 0..=MAX_TASKS {
            tasks.insert(json!({"id": n.to_string()}));
        }
        assert_eq!(tasks.get("0"), None);
        assert_eq!(tasks.get("1"), Some(json!({"id": "1"})));
        assert_eq!(tasks.tasks_newest_first().len(), MAX_TASKS);
        assert_eq!(
            tasks.tasks_newest_first()[0],
            json!({"id": MAX_TASKS.to_string()})
        );
    }
}
