//! Dependencies as cargo resolves them: unused ones, and what manifests share.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Table;

use super::assert_tidy;
use super::code::Token;
use super::imports::is_head;
use super::tree::{Source, files, read, root, sources};

/// Dependencies that a package needs without naming them: the package, the dependency, and why.
const NAMED_NOWHERE: [(&str, &str, &str); 5] = [
    ("registry-tests", "rcgen", SHARED_FILE),
    ("registry-tests", "tokio_rustls", SHARED_FILE),
    ("a2a-registry-embed", "rcgen", SHARED_FILE),
    ("a2a-registry-embed", "rustls", SHARED_FILE),
    ("a2a-registry-embed", "tokio_rustls", SHARED_FILE),
];
const SHARED_FILE: &str = "these tests include a file of the crawler's tests, which names it";

/// Keys that every package inherits from the workspace.
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

/// A dependency of a package.
#[derive(Deserialize)]
struct Dependency {
    /// Its name in code.
    name: String,
    dep_kinds: Vec<Kind>,
}

/// The table of the manifest that lists a dependency.
#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// The resolved dependencies. Crates for other systems may not have been downloaded; then only those for this system are
/// returned.
static METADATA: LazyLock<Metadata> = LazyLock::new(|| {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&cargo);
        command
            .args(arguments)
            .current_dir(root())
            .output()
            .unwrap()
    };
    let metadata = ["metadata", "--offline", "--locked", "--format-version", "1"];
    let mut output = run(&metadata);
    if !output.status.success() {
        let about = String::from_utf8(run(&["--version", "--verbose"]).stdout).unwrap();
        let mut lines = about.lines();
        let host = lines.find_map(|line| line.strip_prefix("host: ")).unwrap();
        output = run(&[&metadata[..], &["--filter-platform", host]].concat());
    }
    let failure = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata failed: {failure}");
    serde_json::from_slice(&output.stdout).unwrap()
});

impl Metadata {
    fn package(&self, id: &str) -> &Package {
        let mut packages = self.packages.iter();
        packages.find(|package| package.id == id).unwrap()
    }

    /// Our packages.
    fn members(&self) -> impl Iterator<Item = &Package> {
        self.workspace_members.iter().map(|id| self.package(id))
    }
}

impl Package {
    /// Its folder, relative to the root of the repository.
    fn folder(&self) -> String {
        let folder = Path::new(&self.manifest_path).parent().unwrap();
        let folder = folder.strip_prefix(root()).unwrap();
        folder.to_str().unwrap().replace('\\', "/")
    }
}

/// The files of each package, by its folder: a file belongs to the innermost package around it.
fn by_package<'a>(files: &[String], sources: &'a [Source]) -> BTreeMap<String, Vec<&'a Source>> {
    let manifests = files
        .iter()
        .filter_map(|file| file.strip_suffix("/Cargo.toml"));
    let folders: Vec<&str> = manifests.collect();
    let mut found: BTreeMap<String, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        let within = folders.iter().filter(|folder| {
            let rest = source.path.strip_prefix(**folder);
            rest.is_some_and(|rest| rest.starts_with('/'))
        });
        if let Some(folder) = within.max_by_key(|folder| folder.len()) {
            found.entry((*folder).to_owned()).or_default().push(source);
        }
    }
    found
}

/// The crates that the code of a package names, grouped by the tables of the manifest.
#[derive(Default)]
struct Names {
    shipped: BTreeSet<String>,
    script: BTreeSet<String>,
    all: BTreeSet<String>,
}

impl Names {
    fn of(sources: &[&Source]) -> Self {
        let mut names = Self::default();
        for source in sources {
            let tokens = source.tokens();
            let is_script = source.path.ends_with("/build.rs");
            let is_test = source.is_test();
            for (index, Token { text, line }) in tokens.iter().enumerate() {
                if !is_head(&tokens, index) {
                    continue;
                }
                names.all.insert(text.clone());
                if is_script {
                    names.script.insert(text.clone());
                } else if !is_test && *line <= source.production_lines {
                    names.shipped.insert(text.clone());
                }
            }
            // Strings in attributes may name crates as well, as in `with = "time::serde::rfc3339"`.
            for quoted in source.text.split('"').skip(1) {
                if let Some((name, _)) = quoted.split_once("::") {
                    names.all.insert(name.to_owned());
                    names.shipped.insert(name.to_owned());
                }
            }
        }
        names
    }
}

/// Dependencies of a package that its code does not name.
fn unused(package: &str, dependencies: &[Dependency], names: &Names) -> Vec<String> {
    let mut problems = Vec::new();
    for Dependency { name, dep_kinds } in dependencies {
        let stands_in = |wanted: Option<&str>| {
            let mut kinds = dep_kinds.iter();
            kinds.any(|kind| kind.kind.as_deref() == wanted)
        };
        let normal = stands_in(None);
        // A dependency in both tables is in the one of the tests for additional features.
        let tests_alone = stands_in(Some("dev")) && !normal;
        for (table, is_in, names) in [
            ("dependencies", normal, &names.shipped),
            (
                "build-dependencies",
                stands_in(Some("build")),
                &names.script,
            ),
            ("dev-dependencies", tests_alone, &names.all),
        ] {
            let mut exceptions = NAMED_NOWHERE.iter();
            let is_excepted = exceptions.any(|row| row.0 == package && row.1 == name);
            if is_in && !names.contains(name) && !is_excepted {
                problems.push(format!(
                    "{package}: nothing that [{table}] is for names {name}: take it out, or move it to the table of \
                     what does"
                ));
            }
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
fn every_dependency_is_used() {
    let sources = sources();
    let by_package = by_package(&files(), &sources);
    let mut problems = Vec::new();
    for package in METADATA.members() {
        let mut nodes = METADATA.resolve.nodes.iter();
        let node = nodes.find(|node| node.id == package.id).unwrap();
        let names = Names::of(&by_package[&package.folder()]);
        problems.extend(unused(&package.name, &node.deps, &names));
    }
    assert_tidy(&problems);
}

#[test]
fn packages_share_version_edition_licence_and_lints() {
    let paths = METADATA
        .members()
        .map(|package| format!("{}/Cargo.toml", package.folder()));
    let problems = paths.flat_map(|path| check_inherited(&path, &read(&path)));
    assert_tidy(&problems.collect::<Vec<_>>());
}

#[test]
fn unused_dependencies_are_found() {
    let sources = [
        (
            "a/src/lib.rs",
            "use one::A;\n#[serde(with = \"two::b\")]\nstruct B(crate::three::C);",
        ),
        ("a/src/lib/tests.rs", "use four::D;"),
        ("a/build.rs", "fn main() { five::run(); }"),
    ]
    .map(|(path, text)| Source::new(path, text));
    let names = Names::of(&sources.iter().collect::<Vec<_>>());
    let problems = |name: &str, kinds: &[Option<&str>]| {
        let kinds = kinds.iter().map(|kind| Kind {
            kind: kind.map(str::to_owned),
        });
        let dependency = Dependency {
            name: name.to_owned(),
            dep_kinds: kinds.collect(),
        };
        unused("a", &[dependency], &names).len()
    };
    for (name, used, unused) in [
        ("one", vec![None, Some("dev")], vec![Some("build")]),
        ("two", vec![None, Some("dev")], vec![]),
        ("three", vec![], vec![None, Some("dev"), Some("build")]),
        ("four", vec![Some("dev")], vec![None, Some("build")]),
        ("five", vec![Some("build")], vec![None]),
    ] {
        for kind in used {
            assert_eq!(problems(name, &[kind]), 0, "{name} {kind:?}");
        }
        for kind in unused {
            assert_eq!(problems(name, &[kind]), 1, "{name} {kind:?}");
        }
    }
    assert_eq!(problems("one", &[None, Some("dev")]), 0);
    assert_eq!(problems("four", &[None, Some("dev")]), 1);
}

#[test]
fn a_file_belongs_to_the_innermost_package() {
    let files = ["Cargo.toml", "a/Cargo.toml", "a/b/Cargo.toml"].map(str::to_owned);
    let sources = ["a/src/lib.rs", "a/b/src/lib.rs", "a/bc.rs", "x.rs"];
    let sources = sources.map(|path| Source::new(path, ""));
    let found = by_package(&files, &sources);
    let paths = |folder: &str| -> Vec<&str> {
        let sources = found[folder].iter();
        sources.map(|source| source.path.as_str()).collect()
    };
    assert_eq!(paths("a"), ["a/src/lib.rs", "a/bc.rs"]);
    assert_eq!(paths("a/b"), ["a/b/src/lib.rs"]);
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
