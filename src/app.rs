//! Puts the parts together: the one file that names concrete adapters.
