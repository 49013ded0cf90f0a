//! Dependencies as cargo resolves them: licences, banned crates, sources, and unused ones.

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
use super::licences;
use super::tree::{Source, files, read, root, sources};

/// The only allowed source of crates, apart from folders of this repository.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

const CRYPTOGRAPHY: &str = "cryptography, TLS and signatures go through ring";
const FETCHING: &str = "requests to other hosts go through the guarded fetcher";

/// Crates that no dependency may pull in: name, prefix of the version, and why.
const BANNED: [(&str, &str, &str); 32] = [
    ("aws-lc-fips-sys", "", CRYPTOGRAPHY),
    ("aws-lc-rs", "", CRYPTOGRAPHY),
    ("aws-lc-sys", "", CRYPTOGRAPHY),
    ("boring", "", CRYPTOGRAPHY),
    ("boring-sys", "", CRYPTOGRAPHY),
    ("curve25519-dalek", "", CRYPTOGRAPHY),
    ("ed25519-dalek", "", CRYPTOGRAPHY),
    ("jsonwebtoken", "", CRYPTOGRAPHY),
    ("k256", "", CRYPTOGRAPHY),
    ("libsodium-sys", "", CRYPTOGRAPHY),
    ("mbedtls", "", CRYPTOGRAPHY),
    ("native-tls", "", CRYPTOGRAPHY),
    ("openssl", "", CRYPTOGRAPHY),
    ("openssl-src", "", CRYPTOGRAPHY),
    ("openssl-sys", "", CRYPTOGRAPHY),
    ("p256", "", CRYPTOGRAPHY),
    ("p384", "", CRYPTOGRAPHY),
    ("rsa", "", CRYPTOGRAPHY),
    ("rustls-openssl", "", CRYPTOGRAPHY),
    ("attohttpc", "", FETCHING),
    ("awc", "", FETCHING),
    ("curl", "", FETCHING),
    ("curl-sys", "", FETCHING),
    ("isahc", "", FETCHING),
    ("minreq", "", FETCHING),
    ("surf", "", FETCHING),
    ("ureq", "", FETCHING),
    ("hf-hub", "", "models are installed from a folder"),
    (
        "h2",
        "0.3.",
        "no release of it fixes RUSTSEC-2026-0258: leave the feature http2 of actix-web out",
    ),
    (
        "onig_sys",
        "",
        "it is compiled from C; fancy-regex replaces it",
    ),
    ("rusqlite", "", "storage goes through sea-orm"),
    (
        "serde_yaml",
        "",
        "it is not maintained; configuration is TOML, the rest JSON",
    ),
];

/// Crates for TLS, signatures and HTTP: two versions of one of them would be two stacks.
const ONCE: [&str; 9] = [
    "h2",
    "hyper",
    "reqwest",
    "ring",
    "rustls",
    "rustls-native-certs",
    "rustls-pki-types",
    "rustls-webpki",
    "tokio-rustls",
];

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

/// A package: one of ours, or a dependency.
#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    license: Option<String>,
    source: Option<String>,
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

/// Checks the licences of packages, our own and others.
fn check_licences<'a>(packages: impl IntoIterator<Item = &'a Package>) -> Vec<String> {
    let packages = packages.into_iter();
    let problems = packages.filter_map(|package| {
        let licence = package.license.as_deref().unwrap_or_default();
        let allowed = match package.source {
            Some(_) => {
                licences::is_allowed(licence) || licences::is_excepted(&package.name, licence)
            }
            None => licence == licences::OURS,
        };
        (!allowed).then(|| {
            format!(
                "{}: the licence {licence:?} is not among those of tests/tidy/licences.rs",
                package.name
            )
        })
    });
    problems.collect()
}

/// Checks the text of `Cargo.lock`, which also has the crates for other systems.
fn check_lock(text: &str, members: &[&str]) -> Vec<String> {
    let lock: Table = text.parse().unwrap();
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lock["package"].as_array().unwrap() {
        let member = |name: &str| package.get(name).and_then(toml::Value::as_str);
        let name = member("name").unwrap();
        let version = member("version").unwrap();
        versions.entry(name).or_default().push(version);
        let known = match member("source") {
            Some(source) => source == REGISTRY,
            None => members.contains(&name),
        };
        if !known {
            problems.push(format!(
                "{name} {version}: crates come from crates.io, or are members of the workspace"
            ));
        }
        for (banned, begins, reason) in BANNED {
            if name == banned && version.starts_with(begins) {
                problems.push(format!(
                    "{name} {version} is banned: {reason}; `cargo tree -i {name}` shows what depends on it"
                ));
            }
        }
    }
    for name in ONCE {
        if let Some(versions) = versions.get(name).filter(|versions| versions.len() > 1) {
            problems.push(format!("{name}: one version is enough, not {versions:?}"));
        }
    }
    problems
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
fn licences_are_allowed() {
    assert_tidy(&check_licences(&METADATA.packages));
}

#[test]
fn crates_come_from_one_source_and_none_is_banned() {
    let members: Vec<&str> = METADATA.members().map(|one| one.name.as_str()).collect();
    assert_tidy(&check_lock(&read("Cargo.lock"), &members));
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
fn foreign_licences_are_found() {
    let problems = |name: &str, licence: Option<&str>, source: Option<&str>| {
        let package = Package {
            id: String::new(),
            name: name.to_owned(),
            license: licence.map(str::to_owned),
            source: source.map(str::to_owned),
            manifest_path: String::new(),
        };
        check_licences([&package]).len()
    };
    assert_eq!(problems("a", Some("MIT"), Some(REGISTRY)), 0);
    assert_eq!(problems("a", Some("GPL-3.0-only"), Some(REGISTRY)), 1);
    assert_eq!(problems("a", None, Some(REGISTRY)), 1);
    assert_eq!(problems("a2a-card", Some("Apache-2.0"), None), 0);
    assert_eq!(problems("a2a-card", Some("MIT"), None), 1);
}

#[test]
fn banned_crates_and_foreign_sources_are_found() {
    let problems = |packages: &[(&str, &str, Option<&str>)]| {
        let packages = packages.iter().map(|(name, version, source)| {
            let source = source.map(|source| format!("source = \"{source}\"\n"));
            format!(
                "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{}",
                source.unwrap_or_default()
            )
        });
        check_lock(&packages.collect::<String>(), &["ours"]).len()
    };
    let registry = Some(REGISTRY);
    assert_eq!(
        problems(&[("ours", "1.0.0", None), ("ring", "0.17.0", registry)]),
        0
    );
    assert_eq!(problems(&[("theirs", "1.0.0", None)]), 1);
    assert_eq!(
        problems(&[("a", "1.0.0", Some("git+https://example.com/a#1"))]),
        1
    );
    assert_eq!(
        problems(&[("a", "1.0.0", Some("registry+https://example.com/index"))]),
        1
    );
    assert_eq!(problems(&[("openssl-sys", "0.9.1", registry)]), 1);
    assert_eq!(problems(&[("openssl-probe", "0.2.0", registry)]), 0);
    assert_eq!(problems(&[("h2", "0.3.26", registry)]), 1);
    assert_eq!(problems(&[("h2", "0.4.9", registry)]), 0);
    assert_eq!(
        problems(&[("ring", "0.16.0", registry), ("ring", "0.17.0", registry)]),
        1
    );
    assert_eq!(
        problems(&[("rand", "0.8.0", registry), ("rand", "0.9.0", registry)]),
        0
    );
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
