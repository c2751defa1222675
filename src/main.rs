//! `profilebench`.
fn main() {}
