//! What the documents list is what there is.

use std::{collections::BTreeMap, fs, path::Path};

use sovereign_relay_protocol::{
    error::ErrorCode,
    push::Reason,
    signal::close::{CloseCode, Next},
};

const CODES: &str = include_str!("../../docs/CODES.md");
const INSTANCES: &str = include_str!("../../docs/INSTANCES.md");

#[test]
fn every_reason_is_in_the_table_with_its_result_its_meaning_and_what_to_do() {
    let (_, rest) = INSTANCES.split_once("\n### Reasons\n").expect("a section");
    let section = rest.split("\n#").next().unwrap();
    let rows: BTreeMap<_, _> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| row.trim_end_matches(" |").split(" | ").collect::<Vec<_>>())
        .map(|cells| (cells[0].trim_end_matches('`'), cells))
        .collect();
    assert_eq!(rows.len(), Reason::ALL.len());
    for reason in Reason::ALL {
        let row = &rows[reason.as_str()];
        assert_eq!(row.len(), 4, "{row:?}");
        let means_gone = [
            Reason::Unregistered,
            Reason::ExpiredToken,
            Reason::BadToken,
            Reason::WrongApp,
            Reason::MalformedToken,
        ];
        let result = match means_gone.contains(&reason) {
            true => "`invalid_token`",
            false => "`failed`",
        };
        assert_eq!(row[1], result, "{row:?}");
    }
}

#[test]
fn every_error_code_is_listed_with_its_status_and_every_close_code_with_what_to_do_next() {
    let rows = |section: &str| -> Vec<Vec<&str>> {
        let (_, rest) = CODES.split_once(section).expect("a section");
        let section = rest.split("\n## ").next().unwrap();
        section
            .lines()
            .filter_map(|line| line.strip_prefix("| "))
            .skip(1)
            .map(|row| row.split(" | ").take(2).collect())
            .collect()
    };
    let errors = ErrorCode::ALL.map(|code| [format!("`{}`", code.as_str()), code.status().to_string()]);
    assert_eq!(rows("\n## Errors\n"), errors);
    let closes = CloseCode::ALL.map(|code| {
        let next = match code.next() {
            Next::Stop => "stop",
            Next::Resume | Next::ResumeWithinGoaway | Next::ResumeLater => "resume",
        };
        [code.code().to_string(), next.to_owned()]
    });
    assert_eq!(rows("\n## Close codes\n"), closes);
}

/// `[...](FILE.md#section)` in any of them.
#[test]
fn every_section_that_a_document_refers_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![root.join("README.md")];
    let folder = fs::read_dir(root.join("docs")).unwrap();
    documents.extend(folder.map(|entry| entry.unwrap().path()));
    let mut seen = 0;
    for document in documents
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
    {
        let text = fs::read_to_string(document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((file, section)) = target.split_once('#').filter(|_| !target.contains("://")) else {
                continue;
            };
            let referred = match file {
                "" => document.clone(),
                file => document.parent().unwrap().join(file),
            };
            let text = fs::read_to_string(&referred).unwrap();
            let titles = text.lines().filter(|line| line.starts_with('#'));
            assert!(
                titles.map(anchor).any(|title| title == section),
                "{target} in {document:?}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 5);
}

/// As GitHub makes it of a title.
fn anchor(title: &str) -> String {
    let title = title.trim_start_matches('#').trim().to_lowercase();
    let kept = title
        .chars()
        .filter(|char| char.is_alphanumeric() || " -_".contains(*char));
    kept.collect::<String>().replace(' ', "-")
}
