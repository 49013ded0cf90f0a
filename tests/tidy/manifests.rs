//! Manifests: dependencies between our packages, and what all of them share.

use toml::Table;

use super::assert_tidy;
use super::tree::{read, repository_files};

/// A package's folder, its name, its dependencies among our packages, and those of its tests alone.
type PackageRule = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// All packages, with exactly their allowed dependencies. No package depends on the tests.
const PACKAGES: [PackageRule; 18] = [
    ("card", "a2a-card", &[], &[]),
    ("crawler", "a2a-crawler", &["a2a-card"], &[]),
    ("migrations", "a2a-migrations", &[], &[]),
    ("registry/domain", "a2a-registry-domain", &["a2a-card"], &[]),
    (
        "registry/policy",
        "a2a-registry-policy",
        &["a2a-registry-domain"],
        &[],
    ),
    ("registry/simd", "a2a-registry-simd", &[], &[]),
    (
        "registry/store",
        "a2a-registry-store",
        &[
            "a2a-card",
            "a2a-crawler",
            "a2a-migrations",
            "a2a-registry-domain",
        ],
        &[],
    ),
    (
        "registry/search",
        "a2a-registry-search",
        &["a2a-registry-domain", "a2a-registry-simd"],
        &[],
    ),
    (
        "registry/builtin_model",
        "a2a-registry-builtin-model",
        &[],
        &[],
    ),
    (
        "registry/embed",
        "a2a-registry-embed",
        &[
            "a2a-crawler",
            "a2a-registry-builtin-model",
            "a2a-registry-simd",
        ],
        &[],
    ),
    (
        "registry/a2a",
        "a2a-client",
        &["a2a-card"],
        &["a2a-crawler", "a2a-registry-demo"],
    ),
    (
        "registry/api",
        "a2a-registry-api",
        &["a2a-card", "a2a-registry-domain"],
        &[],
    ),
    (
        "registry/core",
        "a2a-registry-core",
        &[
            "a2a-card",
            "a2a-client",
            "a2a-crawler",
            "a2a-registry-api",
            "a2a-registry-domain",
            "a2a-registry-embed",
            "a2a-registry-policy",
            "a2a-registry-search",
            "a2a-registry-store",
        ],
        &[],
    ),
    (
        "registry/http",
        "a2a-registry-http",
        &[
            "a2a-card",
            "a2a-client",
            "a2a-crawler",
            "a2a-registry-api",
            "a2a-registry-core",
            "a2a-registry-domain",
            "a2a-registry-policy",
            "a2a-registry-search",
            "a2a-registry-store",
        ],
        &[],
    ),
    (
        "registry/server",
        "a2a-registry-server",
        &[
            "a2a-crawler",
            "a2a-registry-core",
            "a2a-registry-domain",
            "a2a-registry-http",
            "a2a-registry-search",
            "a2a-registry-store",
        ],
        &[
            "a2a-card",
            "a2a-registry-api",
            "a2a-registry-demo",
            "a2a-registry-policy",
        ],
    ),
    (
        "registry/demo",
        "a2a-registry-demo",
        &["a2a-card", "a2a-client", "a2a-crawler"],
        &[],
    ),
    (
        "registry/cli",
        "a2a-registry",
        &[
            "a2a-card",
            "a2a-client",
            "a2a-crawler",
            "a2a-registry-api",
            "a2a-registry-core",
            "a2a-registry-demo",
            "a2a-registry-domain",
            "a2a-registry-embed",
            "a2a-registry-http",
            "a2a-registry-policy",
            "a2a-registry-server",
        ],
        &[],
    ),
    (
        "tests",
        "registry-tests",
        &[],
        &[
            "a2a-card",
            "a2a-client",
            "a2a-crawler",
            "a2a-migrations",
            "a2a-registry-api",
            "a2a-registry-core",
            "a2a-registry-domain",
            "a2a-registry-embed",
            "a2a-registry-http",
            "a2a-registry-policy",
            "a2a-registry-search",
            "a2a-registry-server",
            "a2a-registry-store",
        ],
    ),
];

/// The only package with a program.
const WITH_PROGRAM: &str = "registry/cli";

/// Crates that our packages must not name, although dependencies pull them in: the crate, and the alternative.
const UNWANTED: [(&str, &str); 4] = [
    ("chrono", "use the crate `time`"),
    (
        "hyper-util",
        "requests to other hosts go through the guarded fetcher",
    ),
    ("lazy_static", "the standard library has LazyLock"),
    ("sqlx", "storage goes through sea-orm"),
];

/// Keys that every package inherits from the workspace.
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

/// Has clippy measure the functions of a library, but not those of its tests.
const SHORT_FUNCTIONS: &str = "#![cfg_attr(not(test), warn(clippy::too_many_lines))]\n";

/// Packages whose functions may be long: tests, and migrations, which list tables and are never changed once they have
/// landed.
const LONG_FUNCTIONS: [&str; 2] = ["migrations", "tests"];

/// The names in every table of this kind: the plain one and those under `[target.…]`.
fn dependencies(manifest: &Table, kind: &str) -> Vec<String> {
    let plain = manifest.get(kind).and_then(|value| value.as_table());
    let targets = manifest.get("target").and_then(|value| value.as_table());
    let special = targets.into_iter().flat_map(|targets| targets.values());
    let special = special.filter_map(|target| target.get(kind)?.as_table());
    let tables = plain.into_iter().chain(special);
    tables.flat_map(|table| table.keys().cloned()).collect()
}

fn ours(manifest: &Table, kinds: &[&str]) -> Vec<String> {
    let all = kinds.iter().flat_map(|kind| dependencies(manifest, kind));
    let mut ours: Vec<_> = all
        .filter(|name| PACKAGES.iter().any(|(_, package, ..)| package == name))
        .collect();
    ours.sort();
    ours
}

fn check((folder, name, built_on, tested_with): PackageRule, text: &str) -> Vec<String> {
    let path = format!("{folder}/Cargo.toml");
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("{path}: {error}")],
    };
    let mut problems = Vec::new();
    let mut expect = |holds: bool, problem: String| {
        if !holds {
            problems.push(format!("{path}: {problem}"));
        }
    };

    let package = manifest.get("package").and_then(|value| value.get("name"));
    expect(
        package.and_then(|value| value.as_str()) == Some(name),
        format!("the package must be called {name}"),
    );
    let found = ours(&manifest, &["dependencies", "build-dependencies"]);
    expect(
        found == built_on,
        format!("of our packages it must be built on exactly {built_on:?}, not {found:?}"),
    );
    let found = ours(&manifest, &["dev-dependencies"]);
    expect(
        found == tested_with,
        format!("its dev-dependencies of ours must be exactly {tested_with:?}, not {found:?}"),
    );
    if folder == "tests" {
        for kind in ["dependencies", "build-dependencies"] {
            let found = dependencies(&manifest, kind);
            expect(
                found.is_empty(),
                format!("all dependencies belong in dev-dependencies, also {found:?}"),
            );
        }
    }
    expect(
        manifest.contains_key("bin") == (folder == WITH_PROGRAM),
        format!("[[bin]] is allowed in {WITH_PROGRAM}/Cargo.toml and nowhere else"),
    );
    for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
        for dependency in dependencies(&manifest, kind) {
            if let Some((_, reason)) = UNWANTED.iter().find(|(name, _)| *name == dependency) {
                expect(false, format!("drop {dependency}: {reason}"));
            }
            let table = manifest.get(kind).and_then(|table| table.get(&dependency));
            let shared = table.is_none_or(|value| value.get("workspace").is_some());
            expect(
                shared,
                format!("{dependency} takes its version from [workspace.dependencies]"),
            );
        }
    }
    problems
}

/// Checks that a manifest inherits the shared keys and lints from the workspace.
fn check_inherited(path: &str, text: &str) -> Vec<String> {
    let manifest: Table = text.parse().unwrap();
    let shares = |table: Option<&toml::Value>| {
        let workspace = table.and_then(|table| table.get("workspace"));
        workspace.and_then(toml::Value::as_bool) == Some(true)
    };
    let package = &manifest["package"];
    let mut problems = Vec::new();
    for key in INHERITED {
        if !shares(package.get(key)) {
            problems.push(format!("{path}: write {key}.workspace = true"));
        }
    }
    if !shares(manifest.get("lints")) {
        problems.push(format!("{path}: add [lints] workspace = true"));
    }
    problems
}

#[test]
fn packages_depend_on_each_other_as_designed() {
    let mut problems: Vec<_> = PACKAGES
        .into_iter()
        .flat_map(|package| check(package, &read(&format!("{}/Cargo.toml", package.0))))
        .collect();

    let workspace: Table = read("Cargo.toml").parse().unwrap();
    let list = |key: &str| -> Vec<String> {
        let values = workspace["workspace"][key].as_array().unwrap().iter();
        values
            .map(|value| value.as_str().unwrap().to_owned())
            .collect()
    };
    let folders: Vec<_> = PACKAGES
        .iter()
        .map(|(folder, ..)| (*folder).to_owned())
        .collect();
    if list("members") != folders {
        problems.push(format!("Cargo.toml: members must be {folders:?}"));
    }
    // The tests package is built only when it is named, so nothing it needs reaches a release.
    if list("default-members") != [WITH_PROGRAM] {
        problems.push(format!(
            "Cargo.toml: default-members must be [\"{WITH_PROGRAM}\"]"
        ));
    }
    for path in repository_files() {
        let is_program = path.ends_with("src/main.rs") || path.contains("/src/bin/");
        if is_program && path != format!("{WITH_PROGRAM}/src/main.rs") {
            problems.push(format!(
                "{path}: the only program is {WITH_PROGRAM}/src/main.rs"
            ));
        }
    }
    assert_tidy(&problems);
}

#[test]
fn packages_share_version_edition_licence_and_lints() {
    let paths = PACKAGES.map(|(folder, ..)| format!("{folder}/Cargo.toml"));
    let problems = paths
        .iter()
        .flat_map(|path| check_inherited(path, &read(path)));
    assert_tidy(&problems.collect::<Vec<_>>());
}

#[test]
fn the_functions_of_every_library_are_measured() {
    let measured = PACKAGES.map(|(folder, ..)| folder);
    let measured = measured
        .into_iter()
        .filter(|folder| !LONG_FUNCTIONS.contains(folder));
    let problems = measured.filter_map(|folder| {
        let path = format!("{folder}/src/lib.rs");
        (!read(&path).contains(SHORT_FUNCTIONS)).then(|| format!("{path}: add {SHORT_FUNCTIONS}"))
    });
    assert_tidy(&problems.collect::<Vec<_>>());
}

#[test]
fn wrong_dependencies_are_found() {
    let crawler = PACKAGES[1];
    let good = "[package]\nname = \"a2a-crawler\"\n[dependencies]\n";
    let right = format!("{good}a2a-card.workspace = true\ntime.workspace = true\n");
    assert!(check(crawler, &right).is_empty());
    for wrong in [
        good.to_owned(),
        format!("{right}a2a-registry-domain.workspace = true\n"),
        format!("{right}[build-dependencies]\na2a-migrations.workspace = true\n"),
        format!("{right}[dev-dependencies]\nregistry-tests.workspace = true\n"),
        format!("{right}[target.'cfg(unix)'.dependencies]\na2a-migrations.workspace = true\n"),
        format!("{right}chrono.workspace = true\n"),
        format!("{right}url = \"2\"\n"),
        format!("{right}[[bin]]\nname = \"x\"\n"),
        right.replace("a2a-crawler", "crawler"),
    ] {
        assert_eq!(check(crawler, &wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn deviating_manifests_are_found() {
    let inherited = INHERITED
        .map(|key| format!("{key}.workspace = true\n"))
        .concat();
    let right = format!("[package]\n{inherited}[lints]\nworkspace = true\n");
    let problems = |text: &str| check_inherited("a/Cargo.toml", text).len();
    assert_eq!(problems(&right), 0);
    for (from, to) in [
        (
            "version.workspace = true\nedition",
            "version = \"1.0.0\"\nedition",
        ),
        ("edition.workspace = true\n", ""),
        ("license.workspace = true", "license = \"MIT\""),
        ("[lints]\nworkspace = true\n", ""),
    ] {
        assert_eq!(problems(&right.replace(from, to)), 1, "{from:?} -> {to:?}");
    }
}
