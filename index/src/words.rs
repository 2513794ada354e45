//! Splits text into the words that are indexed and asked for.
