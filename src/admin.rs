//! The admin listener: metrics, and the API behind the CLI.
