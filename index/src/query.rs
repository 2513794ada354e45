//! A question: words, phrases, filters, combined.
