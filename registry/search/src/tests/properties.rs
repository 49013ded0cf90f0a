//! Exact conditions, counts of all values, and ordered lists, against a naive scan.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::oracle::{matches, property_values, random_agent, random_request};
use super::*;

/// An index of random agents in several segments, some of them deleted, and the remaining agents.
fn random_index(dir: &Path, dice: &mut Dice) -> (Index, BTreeMap<Uuid, AgentDocument>) {
    let mut agents = BTreeMap::new();
    let mut documents = |dice: &mut Dice, numbers: std::ops::Range<u64>| {
        let made: Vec<AgentDocument> = numbers.map(|number| random_agent(dice, number)).collect();
        agents.extend(made.iter().map(|agent| (agent.id, agent.clone())));
        made
    };
    let index = built(dir, documents(dice, 0..150));
    for seq in 2..6 {
        let batch = documents(dice, seq * 40..seq * 40 + 60);
        index
            .apply_changes(batch, &[], i64::try_from(seq).unwrap())
            .unwrap();
    }
    let gone: Vec<Uuid> = (0..20).map(id).collect();
    index.apply_changes(Vec::new(), &gone, 6).unwrap();
    agents.retain(|id, _| !gone.contains(id));
    (index, agents)
}

const PROPERTIES: [fn() -> AgentProperty; 5] = [
    || AgentProperty::Facet(Facet::Tag),
    || AgentProperty::Facet(Facet::Skill),
    || AgentProperty::Facet(Facet::Domain),
    || AgentProperty::Attribute("metadata.location".to_owned()),
    || AgentProperty::Attribute("metadata.nothing".to_owned()),
];

#[test]
fn exact_conditions_and_counts_are_those_of_a_scan() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(7);
    let (index, agents) = random_index(dir.path(), &mut dice);
    let mut found_some = 0;
    for _ in 0..300 {
        let mut request = random_request(&mut dice);
        for _ in 0..dice.below(3) {
            let place = usize::try_from(dice.below(4)).unwrap();
            let property = PROPERTIES[place]();
            let held: BTreeSet<String> = agents
                .values()
                .flat_map(|agent| property_values(agent, &property))
                .collect();
            let values = held.into_iter().filter(|_| dice.below(3) == 0).collect();
            request.filters.exact.push(ExactFilter { property, values });
        }
        let expected: Vec<&AgentDocument> = agents
            .values()
            .filter(|agent| matches(agent, &request))
            .collect();
        found_some += usize::from(!expected.is_empty());
        let found: BTreeSet<Uuid> = names(&index, &request).into_iter().collect();
        let wanted: BTreeSet<Uuid> = expected.iter().map(|agent| agent.id).collect();
        assert_eq!(found, wanted, "{request:?}");
        let (limit, least) = (usize::try_from(dice.below(4)).unwrap(), dice.below(3));
        let counted = PROPERTIES.map(|property| ValueCountRequest {
            property: property(),
            limit,
            min_count: least,
        });
        let counts = index.count_values(&request, &counted).unwrap();
        for (one, counts) in counted.iter().zip(counts) {
            assert_eq!(counts, scanned(&expected, one), "{one:?} {request:?}");
        }
    }
    assert!(found_some > 100, "{found_some}");
}

fn scanned(agents: &[&AgentDocument], counted: &ValueCountRequest) -> ValueCounts {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for agent in agents {
        for value in property_values(agent, &counted.property) {
            *counts.entry(value).or_default() += 1;
        }
    }
    let mut values: Vec<(String, u64)> = counts.into_iter().collect();
    values.retain(|(_, count)| *count >= counted.min_count);
    values.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let others = values.split_off(values.len().min(counted.limit));
    ValueCounts {
        values,
        other_count: others.iter().map(|(_, count)| count).sum(),
    }
}

#[test]
fn lists_are_in_their_order_page_after_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(11);
    let (index, agents) = random_index(dir.path(), &mut dice);
    let keys = [
        ListSortKey::Name,
        ListSortKey::Updated,
        ListSortKey::Created,
        ListSortKey::Identifier,
    ];
    for round in 0..60 {
        let like = random_request(&mut dice);
        let order: Vec<(ListSortKey, bool)> = (0..dice.below(4))
            .map(|_| {
                (
                    keys[usize::try_from(dice.below(4)).unwrap()],
                    dice.below(2) == 0,
                )
            })
            .collect();
        let after = (dice.below(2) == 0).then(|| i64::try_from(dice.below(20)).unwrap());
        let mut request = AgentListRequest {
            filters: like.filters.clone(),
            visible_to: like.visible_to.clone(),
            created_after: after,
            sort_order: order,
            limit: 7,
            ..AgentListRequest::default()
        };
        let plain = SearchRequest {
            text: None,
            ..like.clone()
        };
        let mut expected: Vec<&AgentDocument> = agents
            .values()
            .filter(|agent| matches(agent, &plain))
            .filter(|agent| after.is_none_or(|after| agent.created_at > after))
            .collect();
        expected.sort_by(|one, other| {
            let mut by = std::cmp::Ordering::Equal;
            for (key, down) in request.full_sort_order() {
                let this = match key {
                    ListSortKey::Name => text_folding::fold_text(&one.name)
                        .cmp(&text_folding::fold_text(&other.name)),
                    ListSortKey::Updated => one.updated_at.cmp(&other.updated_at),
                    ListSortKey::Created => one.created_at.cmp(&other.created_at),
                    ListSortKey::Identifier => one.identifier.cmp(&other.identifier),
                };
                by = by.then(if down { this.reverse() } else { this });
            }
            by
        });
        let mut listed = Vec::new();
        loop {
            let page = index.list_agents(&request).unwrap();
            assert_eq!(page.total, expected.len() as u64, "{round}");
            listed.extend(page.rows.iter().map(|row| row.hit.clone()));
            request.after = page.rows.last().map(|row| row.position.clone());
            if !page.has_more {
                break;
            }
        }
        let expected: Vec<Vec<u8>> = expected.iter().map(|agent| agent.hit.clone()).collect();
        assert_eq!(listed, expected, "{round} {:?}", request.sort_order);
    }
}

#[test]
fn what_is_too_much_or_of_another_order_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "One")]);
    let one = ValueCountRequest {
        property: AgentProperty::Facet(Facet::Tag),
        limit: 1,
        min_count: 1,
    };
    assert!(
        index
            .count_values(&all(), &vec![one.clone(); MAX_COUNTED_PROPERTIES])
            .is_ok()
    );
    let many = index.count_values(&all(), &vec![one; MAX_COUNTED_PROPERTIES + 1]);
    assert!(matches!(many, Err(IndexError::TooMany { .. })));
    let list = |limit, after| {
        index.list_agents(&AgentListRequest {
            visible_to: public(),
            limit,
            after,
            ..AgentListRequest::default()
        })
    };
    assert_eq!(list(MAX_HITS, None).unwrap().total, 1);
    assert!(matches!(
        list(MAX_HITS + 1, None),
        Err(IndexError::TooMany { .. })
    ));
    for wrong in [vec![], vec![ListSortValue::Time(1)]] {
        assert!(matches!(
            list(1, Some(wrong)),
            Err(IndexError::PositionMismatch)
        ));
    }
}

#[test]
fn attributes_beyond_the_bound_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut many = agent(1, "Many");
    many.attributes = (0..=MAX_ATTRIBUTES)
        .map(|number| ("n".to_owned(), number.to_string()))
        .collect();
    let index = built(dir.path(), vec![many]);
    let has = |value: usize| {
        let mut request = all();
        request.filters.exact = vec![ExactFilter {
            property: AgentProperty::Attribute("n".to_owned()),
            values: vec![value.to_string()],
        }];
        index.search(&request).unwrap().total
    };
    assert_eq!((has(MAX_ATTRIBUTES - 1), has(MAX_ATTRIBUTES)), (1, 0));
}

/// The agents with a value are read in the order of a search for the value until one yields a result or the limit is
/// reached, over many segments with deletions and for callers who see different agents.
#[test]
fn the_newest_agents_with_a_value_are_the_first_that_a_search_for_it_finds() {
    const MOST: usize = 5;
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(47);
    let (index, agents) = random_index(dir.path(), &mut dice);
    let (mut found_any, mut found_all) = (0, 0);
    for labels in [
        vec!["public".to_owned()],
        vec!["group:x".to_owned()],
        Vec::new(),
    ] {
        for facet in [Facet::Skill, Facet::Provider, Facet::Tag] {
            let values: BTreeSet<String> = agents
                .values()
                .flat_map(|agent| property_values(agent, &AgentProperty::Facet(facet)))
                .filter(|value| !value.is_empty())
                .chain(["of nobody".to_owned()])
                .collect();
            let values: Vec<String> = values.into_iter().collect();
            let read: RefCell<BTreeMap<String, Vec<Vec<u8>>>> = RefCell::default();
            let refused =
                index.newest_agents_by_value(facet, &values, &labels, MOST, |value, hit| {
                    let mut read = read.borrow_mut();
                    read.entry(value.to_owned()).or_default().push(hit.to_vec());
                    None::<()>
                });
            assert_eq!(refused.unwrap(), vec![None; values.len()]);
            let mut read = read.into_inner();
            let newest = index
                .newest_agents_by_value(facet, &values, &labels, MOST, |_, hit| Some(hit.to_vec()));
            for (value, newest) in values.iter().zip(newest.unwrap()) {
                let request = SearchRequest {
                    filters: Filters {
                        exact: vec![ExactFilter {
                            property: AgentProperty::Facet(facet),
                            values: vec![value.clone()],
                        }],
                        ..Filters::default()
                    },
                    visible_to: labels.clone(),
                    limit: MOST,
                    ..SearchRequest::default()
                };
                let hits = index.search(&request).unwrap().hits.into_iter();
                let hits: Vec<Vec<u8>> = hits.map(|hit| hit.hit).collect();
                assert_eq!(newest.as_ref(), hits.first(), "{facet:?} {value}");
                found_any += usize::from(!hits.is_empty());
                found_all += usize::from(hits.len() == MOST);
                let read = read.remove(value).unwrap_or_default();
                assert_eq!(read, hits, "{facet:?} {value}");
            }
        }
    }
    assert!(found_any > 30 && found_all > 3, "{found_any} {found_all}");
}
