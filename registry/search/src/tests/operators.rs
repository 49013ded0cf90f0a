//! Query expressions against their naive evaluation.

use super::*;

const WORDS: [&str; 5] = ["alpha", "alpine", "bravo", "cargo", "delta"];

/// An operand of a query, which an agent matches or not.
#[derive(Debug, Clone)]
enum Operand {
    Word(&'static str),
    Phrase(&'static str, &'static str),
    Beginning(&'static str),
    Tag(&'static str),
    Provider(&'static str, fn(&str) -> bool),
}

impl Operand {
    fn any(dice: &mut Dice) -> Self {
        let word = |dice: &mut Dice| WORDS[usize::try_from(dice.below(5)).unwrap()];
        match dice.below(7) {
            0 | 1 => Self::Word(word(dice)),
            2 | 3 => Self::Phrase(word(dice), word(dice)),
            4 => Self::Beginning(["al", "alp", "ca"][usize::try_from(dice.below(3)).unwrap()]),
            5 => Self::Tag(["travel", "Travel", "music"][usize::try_from(dice.below(3)).unwrap()]),
            _ => [
                Self::Provider("acme", |name| name.contains("Acme")),
                Self::Provider("\"tours acme\"", |name| name == "Acme Tours"),
                Self::Provider("GLOBEX", |name| name == "Globex"),
            ][usize::try_from(dice.below(3)).unwrap()]
            .clone(),
        }
    }

    fn written(&self) -> String {
        match self {
            Self::Word(word) => (*word).to_owned(),
            Self::Phrase(one, next) => format!("\"{one} {next}\""),
            Self::Beginning(prefix) => format!("{prefix}*"),
            Self::Tag(tag) => format!("tag:{tag}"),
            Self::Provider(name, _) => format!("provider:{name}"),
        }
    }

    fn is_condition(&self) -> bool {
        matches!(self, Self::Tag(_) | Self::Provider(..))
    }

    /// Whether the operand is optional unless it is joined.
    fn is_optional(&self) -> bool {
        matches!(self, Self::Word(_) | Self::Beginning(_))
    }

    fn holds(&self, agent: &AgentDocument) -> bool {
        let words: Vec<&str> = agent.description.split(' ').collect();
        match self {
            Self::Word(word) => words.contains(word),
            Self::Phrase(one, next) => words.windows(2).any(|pair| pair == [*one, *next]),
            Self::Beginning(prefix) => words.iter().any(|word| word.starts_with(prefix)),
            Self::Tag(tag) => agent.facets[Facet::Tag].contains(&tag.to_lowercase()),
            Self::Provider(_, is) => is(&agent.provider),
        }
    }
}

type Chain = Vec<Vec<Operand>>;

fn chain(dice: &mut Dice) -> Chain {
    (0..=dice.below(3))
        .map(|_| (0..=dice.below(2)).map(|_| Operand::any(dice)).collect())
        .collect()
}

fn written(chain: &Chain) -> String {
    let group = |group: &Vec<Operand>| {
        let group: Vec<String> = group.iter().map(Operand::written).collect();
        group.join(" AND ")
    };
    chain.iter().map(group).collect::<Vec<_>>().join(" OR ")
}

fn expected(agent: &AgentDocument, chains: &[Chain], excluded: Option<&str>) -> bool {
    let met = |chain: &Chain| {
        let mut groups = chain.iter();
        groups.any(|group| group.iter().all(|one| one.holds(agent)))
    };
    let alone = |chain: &Chain| match chain.as_slice() {
        [group] if group.len() == 1 => group.first().cloned(),
        _ => None,
    };
    let optional: Vec<Operand> = chains
        .iter()
        .filter_map(alone)
        .filter(Operand::is_optional)
        .collect();
    let demanded = |chain: &&Chain| !alone(chain).is_some_and(|one| one.is_optional());
    let of_text = |chain: &Chain| !chain.iter().flatten().all(Operand::is_condition);
    let demands_text = chains.iter().filter(demanded).any(of_text);
    chains.iter().filter(demanded).all(met)
        && (demands_text || optional.is_empty() || optional.iter().any(|one| one.holds(agent)))
        && !excluded.is_some_and(|word| Operand::holds(&Operand::Word(leaked(word)), agent))
}

/// The same word with a static lifetime.
fn leaked(word: &str) -> &'static str {
    WORDS.into_iter().find(|known| *known == word).unwrap()
}

/// The chains with each quotation as two words, as they are searched if nothing matches; `None` if any are joined.
fn without_quotations(chains: &[Chain]) -> Option<Vec<Chain>> {
    let mut plain = Vec::new();
    for chain in chains {
        let [group] = chain.as_slice() else {
            return None;
        };
        let [operand] = group.as_slice() else {
            return None;
        };
        match operand {
            Operand::Phrase(one, next) => {
                plain.extend([one, next].map(|word| vec![vec![Operand::Word(word)]]));
            }
            other => plain.push(vec![vec![other.clone()]]),
        }
    }
    Some(plain)
}

fn crowd(dice: &mut Dice) -> Vec<AgentDocument> {
    let agents = (1..=150).map(|number| {
        let mut agent = AgentDocument {
            description: (0..=dice.below(5))
                .map(|_| dice.pick(&WORDS))
                .collect::<Vec<_>>()
                .join(" "),
            provider: dice.pick(&["", "Acme Tours", "Acme", "Globex"]).to_owned(),
            ..agent(number, "Agent")
        };
        agent.facets[Facet::Tag] = dice.some(&["travel", "music"], 1);
        agent.facets[Facet::Provider] = vec![agent.provider.to_lowercase()];
        agent
    });
    agents.collect()
}

#[test]
fn expressions_equal_a_naive_reading() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(77);
    let agents = crowd(&mut dice);
    let index = built(dir.path(), agents.clone());
    let mut found_some = 0;
    for _ in 0..600 {
        let chains: Vec<Chain> = (0..=dice.below(2)).map(|_| chain(&mut dice)).collect();
        let excluded = (dice.below(4) == 0).then(|| dice.pick(&WORDS));
        let mut query: Vec<String> = chains.iter().map(written).collect();
        query.extend(excluded.map(|word| format!("-{word}")));
        let query = query.join(" ");
        let matching = |chains: &[Chain]| -> Vec<Uuid> {
            let agents = agents.iter();
            agents
                .filter(|agent| expected(agent, chains, excluded))
                .map(|agent| agent.id)
                .collect()
        };
        let mut expected = matching(&chains);
        if expected.is_empty() {
            expected = without_quotations(&chains).map_or_else(Vec::new, |plain| matching(&plain));
        }
        expected.sort_unstable();
        let request = SearchRequest {
            limit: 1_000,
            explain: true,
            ..text(&query)
        };
        let answer = index.search(&request).unwrap();
        let mut found = ids(&answer);
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
        assert_eq!(answer.total, expected.len() as u64, "{query}");
        let misread = answer
            .hints
            .iter()
            .any(|hint| hint.kind == HintKind::Syntax);
        assert!(!misread, "{query}");
        // The reported sort order is the effective one.
        let by_relevance = SortOrder::Relevance.effective(Some(&query)) == SortOrder::Relevance;
        for (place, hit) in answer.hits.iter().enumerate() {
            let explained = by_relevance && place < MAX_EXPLAINED_HITS;
            assert_eq!(hit.score.is_some(), by_relevance, "{query}");
            assert_eq!(hit.explain.is_some(), explained, "{query}");
        }
        found_some += usize::from(!found.is_empty() && found.len() < agents.len());
    }
    assert!(found_some > 300, "{found_some}");
}

#[test]
fn the_order_in_force_is_told() {
    for (query, sort) in [
        (None, SortOrder::Updated),
        (Some(""), SortOrder::Updated),
        (Some("?!"), SortOrder::Updated),
        (Some("tag:travel"), SortOrder::Updated),
        (Some("tag:travel OR provider:acme"), SortOrder::Updated),
        (Some("tag:travel flights"), SortOrder::Relevance),
        (Some("tag:travel OR flights"), SortOrder::Relevance),
        (Some("book*"), SortOrder::Relevance),
        (Some("-flights"), SortOrder::Relevance),
    ] {
        assert_eq!(SortOrder::Relevance.effective(query), sort, "{query:?}");
        assert_eq!(SortOrder::Name.effective(query), SortOrder::Name);
    }
}

#[test]
fn a_provider_is_given_by_its_words_in_a_query_and_whole_as_a_filter() {
    let dir = tempfile::tempdir().unwrap();
    let of = |number, provider: &str| {
        let agent = AgentDocument {
            provider: provider.to_owned(),
            ..agent(number, "Agent acme")
        };
        with(agent, Facet::Provider, &[&provider.to_lowercase()])
    };
    let index = built(
        dir.path(),
        vec![
            of(1, "Acme Tours"),
            of(2, "ACME"),
            of(3, "Globex"),
            of(4, "C++"),
        ],
    );
    let sorted = |request: &SearchRequest| {
        let mut found = names(&index, request);
        found.sort_unstable_by_key(|id| id.as_u64_pair().1);
        found
    };
    assert_eq!(sorted(&text("provider:acme")), [id(1), id(2)]);
    assert_eq!(sorted(&text("provider:\"tours acme\"")), [id(1)]);
    assert_eq!(sorted(&text("provider:C++")), [id(4)]);
    assert_eq!(
        sorted(&text("provider:tour OR provider:globex")),
        [id(1), id(3)]
    );
    let mut filtered = all();
    filtered.filters = by(Facet::Provider, &["Acme"]);
    assert_eq!(sorted(&filtered), [id(2)]);
}

#[test]
fn brackets_are_read_as_words_and_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(5);
    let index = built(dir.path(), crowd(&mut dice));
    let total = |query: &str| index.search(&text(query)).unwrap().total;
    let answer = index.search(&text("(alpha OR bravo) AND cargo")).unwrap();
    assert_eq!(answer.total, total("alpha bravo cargo"));
    assert_eq!(answer.hints[0].kind, HintKind::Syntax);
    assert!(answer.total > total("alpha AND cargo OR bravo AND cargo"));
}
