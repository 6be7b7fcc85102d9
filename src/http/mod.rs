//! The public routes.
