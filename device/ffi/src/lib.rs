//! [`sovereign_device`] for Swift and Kotlin, through [UniFFI](https://mozilla.github.io/uniffi-rs/).
//!
//! ```text
//! DeviceStore -> DeviceKeys (public_key, open)
//! DeviceToken ---+-> InstanceClient (register, registrations, revoke: async)
//! DeviceKeys ----'
//! ```
//! Everything is thin: a type here is a type of `sovereign_device` in a form that crosses, and decides nothing. What
//! asks the network is `async`; what asks a store blocks, and is called off the thread that draws. The README has the
//! builds for iOS, macOS and Android.
//!
//! The workspace forbids unsafe code. This crate alone can't: the functions that UniFFI generates are called over the C
//! ABI and read raw pointers. None is written here by hand, which a test holds; all other lints are the workspace's.

pub mod error;
pub mod instance;
pub mod keys;
mod runtime;
pub mod store;
pub mod token;

uniffi::setup_scaffolding!("sovereign_device");

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    #[test]
    fn no_unsafe_code_is_written_by_hand() {
        let keyword = ["un", "safe"].concat();
        let mut seen = 0;
        for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                let code = fs::read_to_string(&path).unwrap();
                let code = code.lines().take_while(|line| *line != "#[cfg(test)]");
                let code = code.filter(|line| !line.trim_start().starts_with("//"));
                assert!(code.clone().all(|line| !line.contains(&keyword)), "{path:?}");
                seen += code.count();
            }
        }
        assert!(seen > 100, "the files were found");
    }
}
