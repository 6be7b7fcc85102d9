//! The embedded store on redb.
