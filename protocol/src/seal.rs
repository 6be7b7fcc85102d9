//! The sealed payload: what instance and device share and the relay never needs.
