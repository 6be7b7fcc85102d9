//! `sovereign-device` for Swift and Kotlin, through UniFFI.
