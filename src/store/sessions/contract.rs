//! The contract that every session store passes.
