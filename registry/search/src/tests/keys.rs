//! Keys: values of all kinds, which are terms of one field.

use super::*;

/// A text that each agent has as a value of one kind.
const SAME: &str = "same";

/// Facets with no other values in the agents of these tests.
fn facets() -> impl Iterator<Item = Facet> {
    let facets = Facet::ALL.iter().copied();
    facets.filter(|facet| agent(0, "Agent").facets[*facet].is_empty())
}

fn having(property: AgentProperty) -> SearchRequest {
    let mut request = all();
    request.filters.exact.push(ExactFilter {
        property,
        values: vec![SAME.to_owned()],
    });
    request
}

#[test]
fn a_value_is_of_its_kind_alone() {
    let path = "metadata.same".to_owned();
    let mut agents = vec![
        AgentDocument {
            lookup_keys: vec![SAME.to_owned()],
            ..agent(101, "Agent")
        },
        AgentDocument {
            identifier: SAME.to_owned(),
            ..agent(102, "Agent")
        },
        AgentDocument {
            attributes: vec![(path.clone(), SAME.to_owned())],
            ..agent(103, "Agent")
        },
        AgentDocument {
            visible_to: vec![SAME.to_owned()],
            ..agent(104, "Agent")
        },
        AgentDocument {
            provider: SAME.to_owned(),
            ..agent(105, "Agent")
        },
        agent(106, SAME),
    ];
    let with_facet = |(number, facet)| with(agent(number, "Agent"), facet, &[SAME]);
    agents.extend((0..).zip(facets()).map(with_facet));
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), agents);

    let counting = SearchRequest {
        facets: Facet::ALL.to_vec(),
        ..all()
    };
    let counted = index.search(&counting).unwrap().facets;
    for (number, facet) in (0..).zip(facets()) {
        let found = names(&index, &having(AgentProperty::Facet(facet)));
        assert_eq!(found, [id(number)], "{facet:?}");
        assert_eq!(counted[&facet].values, [(SAME.to_owned(), 1)], "{facet:?}");
    }
    let found = |property| names(&index, &having(property));
    assert_eq!(found(AgentProperty::Identifier), [id(102)]);
    assert_eq!(found(AgentProperty::Attribute(path)), [id(103)]);
    let found = index.lookup_agents_by_key(SAME, &public(), 10).unwrap();
    assert_eq!(
        found.iter().map(|hit| hit.id).collect::<Vec<_>>(),
        [id(101)]
    );
    let seen = SearchRequest {
        visible_to: vec![SAME.to_owned()],
        ..all()
    };
    assert_eq!(names(&index, &seen), [id(104)]);
    let suggested = index.suggest(SAME, &public(), 10).unwrap();
    let suggested = suggested.iter().map(|one| (one.kind, one.count));
    let expected = [(SuggestionKind::Name, 1), (SuggestionKind::Tag, 1)];
    assert_eq!(suggested.collect::<Vec<_>>(), expected);
}

#[test]
fn agents_that_a_filter_leaves_out_are_counted() {
    let listed = ExactFilter {
        property: AgentProperty::Attribute("entry".to_owned()),
        values: vec!["1".to_owned()],
    };
    let other = ExactFilter {
        property: AgentProperty::Attribute("version".to_owned()),
        values: vec!["2".to_owned()],
    };
    let kite = |number, attributes: &[(&str, &str)]| AgentDocument {
        attributes: attributes
            .iter()
            .map(|(path, value)| ((*path).to_owned(), (*value).to_owned()))
            .collect(),
        ..agent(number, "Kite")
    };
    let entry = kite(101, &[("entry", "1"), ("version", "2")]);
    let hidden = AgentDocument {
        visible_to: vec![SAME.to_owned()],
        ..kite(104, &[])
    };
    let with_entries = vec![entry.clone(), kite(102, &[("entry", "1")])];
    let some_without = vec![
        entry,
        kite(102, &[]),
        kite(103, &[("version", "2")]),
        hidden,
        agent(105, "Boat"),
    ];
    for (agents, words, exact, expected) in [
        (&with_entries, "kite", vec![], 0),
        (&some_without, "kite", vec![], 2),
        (&some_without, "kite", vec![other], 1),
        (&some_without, "boat", vec![], 1),
        (&some_without, "quokka", vec![], 0),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let index = built(dir.path(), agents.clone());
        let mut request = text(words);
        request.filters.exact = exact.clone();
        request.filters.exact.push(listed.clone());
        assert_eq!(index.search(&request).unwrap().left_out, 0);
        request.left_out = Some(LeftOutAgents {
            exact,
            failed: listed.clone(),
        });
        assert_eq!(
            index.search(&request).unwrap().left_out,
            expected,
            "{words}"
        );
    }
}

/// A segment has two term dictionaries, whatever values its agents have.
#[test]
fn all_exact_values_share_a_dictionary() {
    let (schema, fields) = crate::schema::IndexFields::build_schema();
    let indexed = schema.fields().filter(|(_, entry)| entry.is_indexed());
    let indexed: Vec<_> = indexed.map(|(field, _)| field).collect();
    assert_eq!(indexed, [fields.keys.field(), fields.text]);
}

/// A decision has to know all agents of a key, also those that nobody may see.
#[test]
fn all_agents_of_a_key_are_found_or_none_is() {
    let keyed = |number| AgentDocument {
        lookup_keys: vec![SAME.to_owned()],
        ..agent(number, "Agent")
    };
    let hidden = AgentDocument {
        visible_to: Vec::new(),
        ..keyed(2)
    };
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![keyed(1), hidden, agent(3, SAME)]);
    let mut both = vec![id(1), id(2)];
    both.sort_unstable();
    assert_eq!(index.agent_ids_by_key(SAME, 2).unwrap(), Some(both));
    assert_eq!(index.agent_ids_by_key(SAME, 1).unwrap(), None);
    assert_eq!(
        index.agent_ids_by_key("other", 2).unwrap(),
        Some(Vec::new())
    );
    index.apply_changes(Vec::new(), &[id(1)], 2).unwrap();
    assert_eq!(index.agent_ids_by_key(SAME, 1).unwrap(), Some(vec![id(2)]));
}
