//! OAuth access tokens for FCM and WNS: fetched by one task, shared by all pushes, refreshed ahead.
//!
//! A provider client calls [`TokenKeeper::token`] for each push, [`TokenKeeper::refused`] when the provider answers
//! 401 and [`TokenKeeper::accepted`] when it answers anything else. Flow: [`state`] decides when to fetch, of refused
//! tokens with [`refusals`], [`keeper`] waits and shares, [`fetch`] calls the token endpoint with a [`grant`],
//! [`response`] reads the answer.
//!
//! Invariant: at most one request to the token endpoint is under way, however many pushes wait. RFC 6749 (client
//! credentials), RFC 7523 (JWT assertions).

mod fetch;
mod grant;
mod keeper;
mod refusals;
mod response;
mod state;

pub(crate) use self::{
    fetch::TokenEndpoint,
    grant::Grant,
    keeper::{AccessToken, NoToken, TokenError, TokenKeeper},
    state::{Asker, Mend},
};
#[cfg(test)]
pub(crate) use self::{
    fetch::TokenSource,
    response::{Issued, parse as issued},
};
