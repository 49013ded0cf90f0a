//! Keys: values of all kinds, which are terms of one field.

use super::*;

/// A text that agents have as a value of one kind each.
const SAME: &str = "same";

type Give = fn(&mut Document, String);

const FACETS: [(FacetName, Give); 12] = [
    (FacetName::Tag, |agent, value| agent.tags.push(value)),
    (FacetName::Skill, |agent, value| agent.skill_ids.push(value)),
    (FacetName::Capability, |agent, value| {
        agent.capabilities.push(value);
    }),
    (FacetName::Binding, |agent, value| {
        agent.bindings.push(value);
    }),
    (FacetName::ProtocolVersion, |agent, value| {
        agent.protocol_versions.push(value);
    }),
    (FacetName::Provider, |agent, value| {
        agent.provider_key = value;
    }),
    (FacetName::Domain, |agent, value| agent.domain = value),
    (FacetName::Auth, |agent, value| agent.auth.push(value)),
    (FacetName::InputMode, |agent, value| {
        agent.input_modes.push(value);
    }),
    (FacetName::OutputMode, |agent, value| {
        agent.output_modes.push(value);
    }),
    (FacetName::Label, |agent, value| agent.labels.push(value)),
    (FacetName::Signature, |agent, value| {
        agent.signature = value;
    }),
];

fn with(property: Property) -> SearchRequest {
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
        Document {
            lookups: vec![SAME.to_owned()],
            ..agent(101, "Agent")
        },
        Document {
            identifier: SAME.to_owned(),
            ..agent(102, "Agent")
        },
        Document {
            attributes: vec![(path.clone(), SAME.to_owned())],
            ..agent(103, "Agent")
        },
        Document {
            visible_to: vec![SAME.to_owned()],
            ..agent(104, "Agent")
        },
        Document {
            provider: SAME.to_owned(),
            ..agent(105, "Agent")
        },
        agent(106, SAME),
    ];
    agents.extend((0..).zip(FACETS).map(|(number, (_, give))| {
        let mut agent = agent(number, "Agent");
        give(&mut agent, SAME.to_owned());
        agent
    }));
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), agents);

    let counting = SearchRequest {
        facets: FacetName::ALL.to_vec(),
        ..all()
    };
    let counted = index.search(&counting).unwrap().facets;
    for (number, (facet, _)) in (0..).zip(FACETS) {
        let found = names(&index, &with(Property::Facet(facet)));
        assert_eq!(found, [id(number)], "{facet:?}");
        assert_eq!(counted[&facet].values, [(SAME.to_owned(), 1)], "{facet:?}");
    }
    let found = |property| names(&index, &with(property));
    assert_eq!(found(Property::Identifier), [id(102)]);
    assert_eq!(found(Property::Attribute(path)), [id(103)]);
    let found = index.lookup(SAME, &public(), 10).unwrap();
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

/// A segment has two term dictionaries, whatever its agents have.
#[test]
fn all_exact_values_share_a_dictionary() {
    let (schema, fields) = crate::schema::Fields::build();
    let indexed = schema.fields().filter(|(_, entry)| entry.is_indexed());
    let indexed: Vec<_> = indexed.map(|(field, _)| field).collect();
    assert_eq!(indexed, [fields.keys.field(), fields.text]);
}
