//! One command that shows everything on one machine.
