//! The store over a map in memory: what it promises, with no engine to blame.

mod keys;
