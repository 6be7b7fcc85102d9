//! The command line as a whole: what parses, what it prints, how it ends.
