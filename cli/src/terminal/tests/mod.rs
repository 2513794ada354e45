//! What a reader sees of each Markdown construct, and that no text acts on the terminal.

mod constructs;
mod safety;
