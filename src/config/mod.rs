//! What the operator wants: flags, environment, file; checked before anything is bound.
