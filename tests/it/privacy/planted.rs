//! What was planted, and the search for it.

use std::{collections::BTreeMap, path::Path};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

/// Every form that a planted text may be found in, with the name of what was planted.
#[derive(Default)]
pub struct Planted(BTreeMap<String, &'static str>);

impl Planted {
    pub fn new(planted: &[(&'static str, &str)]) -> Self {
        let mut all = Self::default();
        for (name, text) in planted {
            all.add(name, text);
        }
        all
    }

    pub fn add(&mut self, name: &'static str, text: &str) {
        assert!(text.len() >= 8, "{name} is too short to be told from chance");
        let mut forms = vec![text.to_owned(), text.to_lowercase(), text.to_uppercase()];
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        forms.extend([hex.to_uppercase(), hex]);
        forms.extend(encoded(text));
        for form in forms {
            self.0.insert(form, name);
        }
    }

    pub fn search(&self, place: &str, haystack: &[u8]) {
        let haystack = String::from_utf8_lossy(haystack);
        for (form, name) in &self.0 {
            if let Some(at) = haystack.find(form) {
                let around: String = haystack[..at].chars().rev().take(200).collect();
                let around: String = around.chars().rev().collect();
                panic!("{name} found in {place}, as {form} after: {around}");
            }
        }
    }

    /// Every file but those named.
    pub fn search_directory(&self, directory: &Path, except: &[&str]) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                self.search_directory(&path, except);
            } else if !except.contains(&name) {
                self.search(&path.display().to_string(), &std::fs::read(&path).unwrap());
            }
        }
    }
}

/// The characters of base64 that `text` alone decides, for each place it may have in a longer text.
fn encoded(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let longer = format!("{}{text}", "x".repeat(before));
        let whole_groups = longer.len() / 3 * 4;
        let first_own = [0, 2, 3][before];
        for encoder in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            forms.push(encoder.encode(&longer)[first_own..whole_groups].to_owned());
        }
    }
    forms
}

#[test]
fn a_planted_text_is_found_in_every_form_and_place() {
    let planted = Planted::new(&[("a token", "planted-by-the-test")]);
    let found =
        |haystack: String| std::panic::catch_unwind(|| planted.search("here", haystack.as_bytes())).is_err();
    for before in ["", "a", "ab", "abc"] {
        let text = format!("{before}planted-by-the-test and more");
        assert!(found(STANDARD_NO_PAD.encode(&text)) && found(URL_SAFE_NO_PAD.encode(&text)));
        assert!(found(text.bytes().map(|byte| format!("{byte:02x}")).collect()));
        assert!(found(text.to_uppercase()) && found(text));
    }
    assert!(!found("planted by another".repeat(100)));
}
