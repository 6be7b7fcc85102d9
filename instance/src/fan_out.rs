//! wip
pub(crate) mod verdict;
