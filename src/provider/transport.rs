//! TLS roots and outgoing proxies, the same for all providers.
