//! The recurring jobs of the project.
fn main() {}
