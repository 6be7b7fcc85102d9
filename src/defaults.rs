//! Every default that is not part of the public interface, with its reason.
