//! What a request says about itself, parsed at the edge: who calls ([`address`], [`bearer`], [`caller`]), what with ([`body`]).
//!
//! Called by the handlers and the middleware in [`super::context`]. Nothing here decides anything: a parser gives
//! a type or an [`super::error::ApiError`].

pub(crate) mod address;
pub(crate) mod bearer;
pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod own_url;
