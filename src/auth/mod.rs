//! Who asks: instance keys, enrollment, rotation, revocation, and the keys derived from the enrollment secret.
