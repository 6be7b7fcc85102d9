//! WNS.
