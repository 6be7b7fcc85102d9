//! The example is in the documents as it is compiled.

const EXAMPLE: &str = include_str!("../../examples/embed.rs");

/// The block that follows the line naming the example.
fn block<'a>(document: &'a str, name: &str) -> &'a str {
    let (_, rest) = document
        .split_once(&format!("<!-- {name} -->\n```rust\n"))
        .expect("the example is shown");
    let (block, _) = rest.split_once("\n```").expect("the block ends");
    block
}

#[test]
fn the_documents_show_the_example_as_it_is_compiled() {
    let (_, code) = EXAMPLE.split_once("\nuse std").unwrap();
    let code = format!("use std{code}");
    for (document, name) in [
        (include_str!("../../README.md"), "examples/embed.rs"),
        (
            include_str!("../../../docs/INSTANCES.md"),
            "instance/examples/embed.rs",
        ),
    ] {
        assert_eq!(block(document, name), code.trim_end(), "{name}");
    }
}

#[test]
fn the_readme_names_every_setting() {
    let settings = include_str!("../../src/server/settings.rs");
    let names = settings
        .split("env = \"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap());
    let missing: Vec<_> = names
        .filter(|name| !include_str!("../../README.md").contains(&format!("`{name}`")))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}
