//! Budgets shared by instances' actors, and those of addresses.
