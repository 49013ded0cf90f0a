//! temporary
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use a2a_registry_policy::*;
use std::time::Instant;
fn run(name: &str, n: usize, text: impl Fn(usize) -> String) {
    let written: Vec<PolicyText> = (0..n)
        .map(|i| PolicyText {
            id: format!("p{i}"),
            text: text(i),
        })
        .collect();
    let bytes: usize = written.iter().map(|w| w.text.len()).sum();
    let t = Instant::now();
    let set =
        PolicySet::compile(1, &written).unwrap_or_else(|f| panic!("{name} {:?}", f[0].message));
    let compile = t.elapsed();
    let agent = |provider: String| AgentFacts {
        id: "a1".into(),
        domain: "agents.example.com".into(),
        provider,
        tags: vec!["finance".into()],
        ..AgentFacts::default()
    };
    let eval = |a: &AgentFacts| {
        let t = Instant::now();
        set.matches(Action::Discover, a);
        t.elapsed()
    };
    let short = eval(&agent("Acme".into()));
    let long = eval(&agent("a".repeat(1000)));
    let t = Instant::now();
    let c = cost_faults(&written);
    let cost = t.elapsed();
    eprintln!(
        "{name}: {n} policies {bytes} bytes: compile {compile:?} eval short {short:?} eval provider 1000 {long:?}; cost scan {cost:?} {}",
        c.first().map(|f| f.message.clone()).unwrap_or_default()
    );
}
#[test]
fn measure() {
    let head = "forbid (principal, action, resource) when { ";
    run("warm", 1, |_| {
        format!("{head} resource.domain like \"a*\" }};")
    });
    for len in [1000, 16_000, 64_000] {
        run(&format!("like {len}"), 4, |_| {
            format!(
                "{head} resource.domain like \"{}\" }};",
                "*a".repeat(len / 2)
            )
        });
    }
    run("like 64k x60", 60, |_| {
        format!(
            "{head} resource.domain like \"{}\" }};",
            "*a".repeat(32_000)
        )
    });
    run("like 20k total, nasty", 1, |_| {
        format!(
            "{head} resource.provider like \"*{}b\" }};",
            "a".repeat(20_000)
        )
    });
    run("like 20 x 1000, nasty", 20, |_| {
        format!(
            "{head} resource.provider like \"*{}b\" }};",
            "a".repeat(500)
        )
    });
    run("lists", 20, |i| {
        format!(
            "{head} [{}].contains(resource.domain) }};",
            (0..4900)
                .map(|n| format!("\"d{i}-{n}.e\""))
                .collect::<Vec<_>>()
                .join(", ")
        )
    });
    run("numbers", 3, |_| {
        format!(
            "{head} [{}].contains(resource.trust) }};",
            (0..30000)
                .map(|n| (n % 10).to_string())
                .collect::<Vec<_>>()
                .join(",")
        )
    });
    run("lists 4MB", 60, |i| {
        format!(
            "{head} [{}].contains(resource.domain) }};",
            (0..4900)
                .map(|n| format!("\"d{i}-{n}.e\""))
                .collect::<Vec<_>>()
                .join(", ")
        )
    });
    run("1000 plain conditions", 1000, |i| {
        format!("{head} resource.tags.contains(\"t{i}\") || resource.trust > {i} }};")
    });
    run("comparisons", 100, |i| {
        format!(
            "{head} {} }};",
            (0..160)
                .map(|n| format!("resource.trust > {}", n + i))
                .collect::<Vec<_>>()
                .join(" || ")
        )
    });
    run("spaces 4MB", 60, |_| {
        format!("{head} resource.trust > 3 {} }};", " ".repeat(64_000))
    });
    run("comments", 60, |_| {
        format!("{}\n{head} resource.trust > 3 }};", "// x\n".repeat(12_000))
    });
    for text in [
        format!(
            "{head} [{}].contains(resource.domain) }};",
            (0..4900)
                .map(|n| format!("\"d-{n}.e\""))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        format!(
            "{head} resource.domain like \"{}\" }};",
            "*a".repeat(10_000)
        ),
    ] {
        let t = Instant::now();
        let f = formatted(&text).map(|t| t.len());
        eprintln!(
            "formatted {} bytes in {:?} -> {f:?}",
            text.len(),
            t.elapsed()
        );
    }
    run("strings", 60, |_| {
        format!("{head} resource.domain == \"{}\" }};", "x".repeat(64_000))
    });
}
