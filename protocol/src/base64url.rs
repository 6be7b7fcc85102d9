//! Base64url without padding and standard base64 with padding, the two forms the interface uses.
