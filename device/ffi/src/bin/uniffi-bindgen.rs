//! Writes the bindings: `cargo run -p sovereign-device-ffi --features bindgen --bin uniffi-bindgen -- generate ...`.
//!
//! The same version as the library's scaffolding, which is what UniFFI demands of the two.

fn main() {
    uniffi::uniffi_bindgen_main();
}
