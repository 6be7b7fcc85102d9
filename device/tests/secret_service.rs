//! The operating system's store against a real one: GNOME's Secret Service on a D-Bus of the test's own, in a home of
//! the test's own.
//!
//! A test starts itself again within such a session, and there does what it is about; several processes of one user are
//! the same test once more, told to be one of them.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test binary has no users, and a helper that fails fails its test"
)]

use std::{
    collections::HashSet,
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use keyring_core::api::CredentialStoreApi as _;
use sovereign_device::{Keys, KeysError, Store, StoreError};
use tempfile::TempDir;

const SERVICE: &str = "org.example.app";
const ROLE: &str = "SOVEREIGN_DEVICE_TEST_ROLE";
/// Unlocks with an empty password; the service ends with its bus.
const UNLOCKED: &str =
    r#"printf '\n' | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1 && exec "$@""#;
/// The bus starts the service itself, which nobody unlocks, and there is nobody to ask.
const LOCKED: &str = r#"exec "$@""#;
const NO_BUS: &str = r#"unset DBUS_SESSION_BUS_ADDRESS; exec "$@""#;

/// What a run of a test is.
#[derive(PartialEq, Eq)]
enum Role {
    /// The one that the test runner started.
    Outside,
    /// Within the session.
    Inside,
    /// One of several processes within the session.
    Maker,
}

fn role() -> Role {
    match env::var(ROLE).as_deref() {
        Ok("inside") => Role::Inside,
        Ok("maker") => Role::Maker,
        _ => Role::Outside,
    }
}

/// The test's own program, with nothing of this user's.
fn again(name: &str, role: &str) -> Vec<String> {
    let program = env::current_exe()
        .unwrap()
        .into_os_string()
        .into_string()
        .unwrap();
    let role = format!("{ROLE}={role}");
    ["env", &role, &program, "--exact", name, "--nocapture"]
        .map(str::to_owned)
        .into()
}

fn in_session(script: &str, name: &str) {
    let home = TempDir::new().unwrap();
    let runtime = home.path().join("run");
    fs::create_dir(&runtime).unwrap();
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    let output = Command::new("dbus-run-session")
        .args(["--", "sh", "-c", script, "sh"])
        .args(again(name, "inside"))
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap())
        .env("HOME", home.path())
        .env("XDG_RUNTIME_DIR", &runtime)
        .stdin(Stdio::null())
        .output()
        .expect("dbus-run-session, from Debian's package dbus");
    assert_passed(&output);
}

fn assert_passed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{errors}"
    );
    said
}

fn store() -> Store {
    Store::os(SERVICE, "https://example.org alice")
}

fn other_account() -> Store {
    Store::os(SERVICE, "https://example.org bob")
}

/// As another program would write to the same place.
fn entry() -> keyring_core::Entry {
    let service = zbus_secret_service_keyring_store::Store::new().unwrap();
    service.build(SERVICE, "https://example.org alice", None).unwrap()
}

#[test]
fn a_pair_is_made_once_and_kept_for_its_account_alone() {
    if role() == Role::Outside {
        return in_session(UNLOCKED, "a_pair_is_made_once_and_kept_for_its_account_alone");
    }
    assert!(Keys::existing(store()).unwrap().is_none());
    let public = Keys::open_or_make(store()).unwrap().public_key();
    assert_eq!(Keys::open_or_make(store()).unwrap().public_key(), public);
    assert_eq!(Keys::existing(store()).unwrap().unwrap().public_key(), public);
    assert_ne!(Keys::open_or_make(other_account()).unwrap().public_key(), public);

    store().forget().unwrap();
    store().forget().unwrap();
    assert!(Keys::existing(store()).unwrap().is_none());
    assert!(Keys::existing(other_account()).unwrap().is_some());
    assert_ne!(Keys::open_or_make(store()).unwrap().public_key(), public);
}

#[test]
fn many_processes_that_make_a_pair_at_once_end_with_one() {
    let name = "many_processes_that_make_a_pair_at_once_end_with_one";
    match role() {
        Role::Outside => in_session(UNLOCKED, name),
        Role::Maker => println!(
            "public key: {}",
            Keys::open_or_make(store()).unwrap().public_key()
        ),
        Role::Inside => {
            let [program, arguments @ ..] = &again(name, "maker")[..] else {
                panic!("a command");
            };
            let start = || {
                Command::new(program)
                    .args(arguments)
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap()
            };
            let makers: Vec<_> = (0..8).map(|_| start()).collect();
            let said = makers
                .into_iter()
                .map(|maker| assert_passed(&maker.wait_with_output().unwrap()));
            let keys: HashSet<String> = said
                .map(|said| {
                    said.split_once("public key: ")
                        .unwrap()
                        .1
                        .lines()
                        .next()
                        .unwrap()
                        .to_owned()
                })
                .collect();
            let kept = Keys::existing(store()).unwrap().unwrap().public_key();
            assert_eq!(keys, HashSet::from([kept]));
        }
    }
}

#[test]
fn a_foreign_or_damaged_entry_is_an_error_and_is_left_alone() {
    if role() == Role::Outside {
        return in_session(
            UNLOCKED,
            "a_foreign_or_damaged_entry_is_an_error_and_is_left_alone",
        );
    }
    Keys::open_or_make(store()).unwrap();
    let whole = entry().get_secret().unwrap();
    let mut flipped = whole.clone();
    flipped[40] ^= 1;
    for (secret, expected) in [
        (b"hunter2".to_vec(), "Foreign"),
        (b"\xff\xfe".to_vec(), "Foreign"),
        (whole[..100].to_vec(), "Damaged"),
        (flipped, "Damaged"),
    ] {
        entry().set_secret(&secret).unwrap();
        let KeysError::Store(error) = Keys::open_or_make(store()).unwrap_err() else {
            panic!("an error of the store");
        };
        assert_eq!(format!("{error:?}"), expected);
        assert_eq!(entry().get_secret().unwrap(), secret);
    }
    entry().set_secret(&whole).unwrap();
    assert!(Keys::existing(store()).unwrap().is_some());
}

#[test]
fn a_locked_store_is_an_error_and_makes_no_pair() {
    if role() == Role::Outside {
        return in_session(LOCKED, "a_locked_store_is_an_error_and_makes_no_pair");
    }
    let KeysError::Store(error) = Keys::open_or_make(store()).unwrap_err() else {
        panic!("an error of the store");
    };
    assert!(
        matches!(error, StoreError::Locked(_) | StoreError::Unavailable(_)),
        "{error:?}"
    );
    let keyrings = Path::new(&env::var_os("HOME").unwrap()).join(".local/share/keyrings");
    let names: Vec<_> = fs::read_dir(keyrings)
        .into_iter()
        .flatten()
        .map(|name| name.unwrap().file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| !name.to_string_lossy().ends_with(".keyring")),
        "{names:?}"
    );
}

#[test]
fn without_a_store_there_is_an_error_that_says_so() {
    if role() == Role::Outside {
        return in_session(NO_BUS, "without_a_store_there_is_an_error_that_says_so");
    }
    let error = Keys::existing(store()).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let error = Keys::open_or_make(store()).unwrap_err();
    assert!(
        matches!(error, KeysError::Store(StoreError::Unavailable(_))),
        "{error:?}"
    );
    assert!(matches!(store().forget(), Err(StoreError::Unavailable(_))));
}
