//! Rule labels: what callers with marked labels find is what a comparison with all labels of each agent gives, whatever
//! was changed, merged, switched and restarted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::labels::told;
use super::oracle::{WORDS, random_agent};
use super::*;
use crate::rule_label_file::RULE_LABEL_FILE;

/// Labels of callers, where `P` stands for the set of rules.
const CALLERS: [&[&str]; 7] = [
    &["public"],
    &["public", "+P"],
    &["public", "+P+0"],
    &["public", "internal", "+P+0", "+P+1", "-P-2"],
    &["public", "+P", "-P-2"],
    &["internal", "-P-2", "-P+0"],
    &["public", "+P+1", "!internal"],
];

type Agents = BTreeMap<u64, AgentDocument>;

fn caller(labels: &[&str], set: u32) -> Vec<String> {
    let labels = labels.iter();
    labels
        .map(|label| label.replace('P', &format!("p{set}")))
        .collect()
}

fn some_rules(dice: &mut Dice, set: u32) -> Vec<String> {
    let mut labels = vec![format!("p{set}")];
    for rule in ["+0", "+1", "-2"] {
        if dice.below(2) == 0 {
            labels.push(format!("p{set}{rule}"));
        }
    }
    labels
}

fn ruled_agent(dice: &mut Dice, number: u64, set: u32) -> AgentDocument {
    AgentDocument {
        visible_to: vec![dice.pick(&["public", "internal"]).to_owned()],
        rule_labels: some_rules(dice, set),
        ..random_agent(dice, number)
    }
}

fn sees(labels: &[String], agent: &AgentDocument) -> bool {
    let all: Vec<String> = agent
        .visible_to
        .iter()
        .chain(&agent.rule_labels)
        .cloned()
        .collect();
    is_visible_to(labels, &all)
}

fn request(labels: &[String], word: &str) -> SearchRequest {
    SearchRequest {
        text: Some(word.to_owned()),
        visible_to: labels.to_vec(),
        class_labels: labels.to_vec(),
        facets: vec![Facet::Tag, Facet::Lifecycle],
        limit: 100,
        ..SearchRequest::default()
    }
}

/// Compares hits in their order, totals, facets and hints with an index of only the agents that the caller sees.
fn check(index: &Index, agents: &Agents, set: u32, word: &str) -> u64 {
    let mut found = 0;
    for labels in CALLERS {
        let labels = caller(labels, set);
        let seen = agents.values().filter(|agent| sees(&labels, agent));
        let seen: Vec<AgentDocument> = seen
            .map(|agent| AgentDocument {
                visible_to: public(),
                rule_labels: Vec::new(),
                ..agent.clone()
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let alone = built(folder.path(), seen);
        let (ruled, plain) = (request(&labels, word), request(&public(), word));
        assert_eq!(told(index, &ruled), told(&alone, &plain), "{labels:?}");
        assert_eq!(names(index, &ruled), names(&alone, &plain), "{labels:?}");
        found += index.search(&ruled).unwrap().total;
    }
    found
}

/// Puts other rules in force that share one with those before, and lets the model follow.
fn switch(index: &Index, agents: &mut Agents, dice: &mut Dice, set: u32) {
    let (old, new) = (format!("p{set}"), format!("p{}", set + 1));
    let copies = vec![(format!("{old}+0"), format!("{new}+1"))];
    let mut update = index.new_rule_label_update(new.clone(), copies);
    for (number, agent) in agents.iter_mut() {
        let mut labels = Vec::new();
        if dice.below(2) == 0 {
            labels.push(format!("{new}-2"));
        }
        update.add_agent(id(*number), &labels);
        if agent.rule_labels.contains(&format!("{old}+0")) {
            labels.push(format!("{new}+1"));
        }
        labels.push(new.clone());
        agent.rule_labels.extend(labels);
        agent
            .rule_labels
            .retain(|label| label.starts_with(&old) || label.starts_with(&new));
    }
    index.apply_rule_label_update(&update);
    index.retain_rule_labels(|label| label.starts_with(&old) || label.starts_with(&new));
}

#[test]
fn rules_decide_as_a_comparison_of_all_labels_does() {
    let mut dice = Dice(0x2b_9d17);
    let mut agents: Agents = (0..70)
        .map(|number| (number, ruled_agent(&mut dice, number, 1)))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let mut index = built(folder.path(), agents.values().cloned().collect());
    let (mut set, mut found) = (1, 0);
    for round in 0..36 {
        match round % 6 {
            4 => {
                switch(&index, &mut agents, &mut dice, set);
                set += 1;
            }
            5 => {
                index.save_rule_labels();
                drop(index);
                index = Index::open(folder.path(), config()).unwrap().0;
                assert_eq!(index.restored_rule_labels_seq(), Some(index.applied_seq()));
            }
            _ => {
                let changed: Vec<u64> = (0..4).map(|_| dice.below(80)).collect();
                let gone: Vec<u64> = (0..2).map(|_| dice.below(80)).collect();
                agents.retain(|number, _| !gone.contains(number));
                for number in &changed {
                    agents.insert(*number, ruled_agent(&mut dice, *number, set));
                }
                let upserts = changed.iter().filter_map(|number| agents.get(number));
                let upserts = upserts.cloned().collect();
                let deletes: Vec<Uuid> = gone.into_iter().map(id).collect();
                index.apply_changes(upserts, &deletes, round + 2).unwrap();
            }
        }
        let word = dice.pick(&WORDS);
        found += check(&index, &agents, set, word);
        found += check(&index, &agents, set.saturating_sub(1).max(1), word);
    }
    assert!(found > 200, "{found}");
}

#[test]
fn an_update_leaves_agents_as_they_are_that_changed_in_the_meantime() {
    let folder = tempfile::tempdir().unwrap();
    let index = built(folder.path(), vec![agent(1, "one"), agent(2, "two")]);
    let everyone = vec!["public".to_owned(), "+p1+0".to_owned()];
    let seen = |index: &Index| {
        let request = SearchRequest {
            visible_to: everyone.clone(),
            class_labels: everyone.clone(),
            ..all()
        };
        let mut seen = names(index, &request);
        seen.sort_unstable();
        seen
    };
    assert_eq!(index.agents_without_rule_label("p1").unwrap().len(), 2);
    let mut update = index.new_rule_label_update("p1".to_owned(), Vec::new());
    for number in [1, 2] {
        update.add_agent(id(number), &["p1+0".to_owned()]);
    }
    let changed = AgentDocument {
        rule_labels: vec!["p1".to_owned()],
        ..agent(2, "two")
    };
    index.apply_changes(vec![changed], &[], 2).unwrap();
    let before = index.generation();
    assert!(seen(&index).is_empty());
    index.apply_rule_label_update(&update);
    assert_eq!(seen(&index), [id(1)]);
    assert!(index.generation() > before, "cached answers would be wrong");
    assert!(index.agents_without_rule_label("p1").unwrap().is_empty());
    // What is forgotten is hidden until it is evaluated again.
    index.forget_rule_labels_of_agents(&[id(1)]);
    assert!(seen(&index).is_empty());
    assert_eq!(index.agents_without_rule_label("p1").unwrap(), [id(1)]);
}

#[test]
fn without_their_file_agents_count_as_not_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let evaluated = AgentDocument {
        rule_labels: vec!["p1".to_owned()],
        ..agent(1, "one")
    };
    let index = built(folder.path(), vec![evaluated]);
    let labels = vec!["public".to_owned(), "+p1".to_owned()];
    let count = |index: &Index| {
        let request = SearchRequest {
            visible_to: labels.clone(),
            class_labels: labels.clone(),
            ..all()
        };
        index.search(&request).unwrap().total
    };
    assert_eq!(count(&index), 1);
    drop(index);
    let file = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path().join(RULE_LABEL_FILE))
        .find(|file| file.exists())
        .unwrap();
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    for bytes in [&whole[..whole.len() / 2], &damaged[..], &[][..]] {
        std::fs::write(&file, bytes).unwrap();
        let (index, _) = Index::open(folder.path(), config()).unwrap();
        assert_eq!((count(&index), index.restored_rule_labels_seq()), (0, None));
        assert_eq!(index.agents_without_rule_label("p1").unwrap(), [id(1)]);
    }
    std::fs::write(&file, &whole).unwrap();
    let (index, _) = Index::open(folder.path(), config()).unwrap();
    assert_eq!(count(&index), 1);
}

/// Searches meanwhile find what the old rules show, and under the new ones nothing or everything that these show, with
/// the facets of just those agents.
#[test]
fn searches_see_all_of_an_update_or_nothing() {
    const AGENTS: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let agents = (0..AGENTS).map(|number| AgentDocument {
        rule_labels: vec!["p1".to_owned()],
        ..with(agent(number, "one"), Facet::Tag, &["x"])
    });
    let index = built(folder.path(), agents.collect());
    let find = |labels: &[&str]| {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let answer = index.search(&request(&labels, "one")).unwrap();
        let tags = answer.facets.get(&Facet::Tag);
        let counted = tags.and_then(|tags| tags.values.first());
        let counted = counted.map_or(0, |(_, count)| *count);
        assert_eq!(answer.total, counted);
        answer.total
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(find(&["public", "+p1"]), AGENTS);
                    let shown = find(&["public", "+p2", "-p2-0"]);
                    assert!([0, AGENTS / 2].contains(&shown), "{shown}");
                }
            });
        }
        for _ in 0..20 {
            let mut update = index.new_rule_label_update("p2".to_owned(), Vec::new());
            for number in 0..AGENTS {
                let hidden = (number % 2 == 0).then(|| "p2-0".to_owned());
                update.add_agent(id(number), &Vec::from_iter(hidden));
            }
            index.apply_rule_label_update(&update);
            assert_eq!(find(&["public", "+p2", "-p2-0"]), AGENTS / 2);
            index.retain_rule_labels(|label| label == "p1");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Two hundred rules cost at most 128 bytes for each agent.
#[test]
fn rules_take_a_bit_for_each_agent() {
    const AGENTS: u64 = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let index = built(folder.path(), vec![agent(1, "one")]);
    let mut update = index.new_rule_label_update("p1".to_owned(), Vec::new());
    for number in 0..AGENTS {
        let place = number % 200;
        let labels = [format!("p1+{place}"), format!("p1-{}", (place + 1) % 200)];
        update.add_agent(id(number), &labels);
    }
    index.apply_rule_label_update(&update);
    let bytes = index.rule_label_bytes() as u64;
    assert!(bytes < 128 * AGENTS, "{} an agent", bytes / AGENTS);
}
