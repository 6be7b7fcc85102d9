//! The table against the sources that count, and against the document.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use super::*;

const DOCUMENT: &str = include_str!("../../../docs/METRICS.md");
const MACROS: [(&str, Kind); 3] = [
    ("counter!(", Kind::Counter),
    ("gauge!(", Kind::Gauge),
    ("histogram!(", Kind::Histogram),
];

type Shape = (&'static str, BTreeSet<String>);

fn all() -> impl Iterator<Item = &'static Metric> {
    SECTIONS.iter().flat_map(|section| section.metrics)
}

/// What the code counts, with the labels that stand there.
fn counted() -> BTreeMap<String, Shape> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    for folder in ["src", "actors/src", "protocol/src"] {
        read(&root.join(folder), &mut found);
    }
    found
}

fn read(path: &Path, found: &mut BTreeMap<String, Shape>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), found);
        }
        return;
    }
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    for (opening, kind) in MACROS {
        for call in code.split(opening).skip(1) {
            let Some((name, rest)) = call
                .trim_start()
                .strip_prefix('"')
                .and_then(|name| name.split_once('"'))
            else {
                continue;
            };
            let labels = labels(rest.split(';').next().unwrap());
            if let Some((before, _)) = found.get(name) {
                assert_eq!(*before, kind.as_str(), "{name}");
            }
            let shape = found
                .entry(name.to_owned())
                .or_insert((kind.as_str(), BTreeSet::new()));
            shape.1.extend(labels);
        }
    }
}

/// The names before each `=>`.
fn labels(arguments: &str) -> impl Iterator<Item = String> {
    let mut parts: Vec<&str> = arguments.split("\" =>").collect();
    parts.pop();
    parts
        .into_iter()
        .map(|before| before.rsplit('"').next().unwrap().to_owned())
}

#[test]
fn the_table_is_what_the_code_counts() {
    let table: BTreeMap<_, Shape> = all()
        .map(|metric| {
            let labels = metric.labels.iter().map(|label| label.name.to_owned());
            (metric.name.to_owned(), (metric.kind.as_str(), labels.collect()))
        })
        .collect();
    let mut counted = counted();
    counted.retain(|name, _| name.starts_with("relay_") && !name.starts_with("relay_telemetry_test_"));
    assert!(counted.len() > 30, "the sources were read");
    assert_eq!(counted, table, "counted in the code | in src/telemetry/names.rs");
}

#[test]
fn no_metric_stands_twice_and_names_end_as_prometheus_wants_them() {
    let names: BTreeSet<_> = all().map(|metric| metric.name).collect();
    assert_eq!(names.len(), all().count());
    for metric in all() {
        assert_eq!(
            metric.name.ends_with("_total"),
            metric.kind == Kind::Counter,
            "{metric:?}"
        );
        assert_eq!(
            metric.name.ends_with("_seconds"),
            metric.unit == Unit::Seconds,
            "{metric:?}"
        );
        assert_eq!(
            metric.name.ends_with("_bytes"),
            metric.unit == Unit::Bytes,
            "{metric:?}"
        );
        assert!(!metric.help.ends_with('.') && metric.help.len() > 9, "{metric:?}");
    }
}

#[test]
fn the_document_lists_the_table() {
    let (_, tables) = DOCUMENT.split_once("\n## ").expect("a section");
    let tables = format!("## {tables}");
    assert_eq!(
        tables,
        document(),
        "docs/METRICS.md from its first section on | what it has to be"
    );
}

fn document() -> String {
    let sections: Vec<_> = SECTIONS.iter().map(section).collect();
    sections.join("\n")
}

fn section(section: &Section) -> String {
    let mut text = format!(
        "## {}\n\n| metric | type | labels | what it tells |\n|---|---|---|---|\n",
        section.title
    );
    for Metric {
        name,
        kind,
        labels,
        help,
        ..
    } in section.metrics
    {
        let labels: Vec<_> = labels.iter().map(label).collect();
        writeln!(
            text,
            "| `{name}` | {} | {} | {help} |",
            kind.as_str(),
            labels.join("; ")
        )
        .unwrap();
    }
    text
}

fn label(label: &Label) -> String {
    if label.values.is_empty() {
        format!("`{}`", label.name)
    } else {
        format!("`{}`: {}", label.name, label.values.join(", "))
    }
}
