//! One actor per instance: its limits, its suspension, its memory of dead tokens.
