//! Where secrets may stand, and that none is printed.

use std::fs;

use super::*;

#[test]
fn a_secret_may_stand_in_a_file_and_loses_one_newline() {
    let folder = tempfile::tempdir().unwrap();
    let secret = |content: &str| {
        let path = folder.path().join("secret");
        fs::write(&path, content).unwrap();
        let loaded = load(&[("RELAY_ENROLLMENT_SECRET_FILE", path.to_str().unwrap())]);
        loaded.map(|config| config.enrollment.secret.unwrap().expose().to_owned())
    };
    assert_eq!(secret("0123456789abcdef\n").unwrap(), "0123456789abcdef");
    assert_eq!(secret("0123456789abcdef\n\n").unwrap(), "0123456789abcdef\n");
    assert_eq!(secret("0123456789abcdef").unwrap(), "0123456789abcdef");
    assert!(secret("\n").unwrap_err().to_string().contains("is empty"));
}

#[test]
fn a_secret_given_twice_in_one_source_is_refused_and_a_stronger_source_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, "from-the-file-0123456789").unwrap();
    let file = ("RELAY_ENROLLMENT_SECRET_FILE", path.to_str().unwrap());
    let direct = ("RELAY_ENROLLMENT_SECRET", "given-directly-0123456789");
    let error = load(&[file, direct]).unwrap_err().to_string();
    assert!(
        error.contains("RELAY_ENROLLMENT_SECRET and RELAY_ENROLLMENT_SECRET_FILE are both set"),
        "{error}"
    );
    let config = load_with_flags(&[file], &[direct]).unwrap();
    assert_eq!(
        config.enrollment.secret.unwrap().expose(),
        "from-the-file-0123456789"
    );
}

#[test]
fn a_secret_file_that_cannot_be_read_is_named() {
    let error = load(&[("APNS_KEY_FILE", "/nowhere/key.p8")])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("APNS_KEY_FILE (environment): can't read /nowhere/key.p8"),
        "{error}"
    );
}

#[test]
fn short_secrets_and_secrets_on_the_command_line_are_warned_of() {
    let config = load_with_flags(&[("RELAY_ENROLLMENT_SECRET", "0123456789abcdef")], &[]).unwrap();
    assert!(
        config
            .warnings
            .iter()
            .any(|warning| warning.contains("less than 32 bytes"))
    );
    assert!(
        config
            .warnings
            .iter()
            .any(|warning| warning.contains("use RELAY_ENROLLMENT_SECRET_FILE"))
    );
}

#[test]
fn a_secret_that_could_not_be_listed_as_previous_is_warned_of() {
    let is_warned = |secret: &str| {
        let config = load(&[("RELAY_ENROLLMENT_SECRET", secret)]).unwrap();
        let mut warnings = config.warnings.iter();
        warnings.any(|warning| warning.contains("can't stand in RELAY_ENROLLMENT_SECRET_PREVIOUS"))
    };
    let can_be_listed = |secret: &str| {
        let listed = load(&[("RELAY_ENROLLMENT_SECRET_PREVIOUS", secret)]);
        listed.is_ok_and(|config| {
            config
                .enrollment
                .previous_secrets
                .iter()
                .map(|one| one.expose())
                .eq([secret])
        })
    };
    for wrong in [
        "a secret with a comma, which parts it",
        " a secret that begins with whitespace",
        "a secret that ends with whitespace \t",
    ] {
        assert!(is_warned(wrong) && !can_be_listed(wrong), "{wrong:?}");
    }
    let right = "a secret with whitespace within";
    assert!(!is_warned(right) && can_be_listed(right));
}

#[test]
fn no_secret_is_in_the_debug_form_of_anything() {
    let (config, marks) = everything_secret();
    let printed = format!("{config:?}{config:#?}");
    for mark in marks {
        assert!(!printed.contains(&mark), "{mark} is printed");
    }
    let flags: Flags = [("APNS_KEY".to_owned(), MARK.to_owned())].into_iter().collect();
    assert_eq!(format!("{flags:?}"), "Flags([\"APNS_KEY\"])");
}
