//! Pseudo-random numbers, the same for the same seed, for tests that proptest cannot drive.

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    /// Log-uniform: as many between 1 and 10 as between 10 and 100.
    pub(crate) fn size(&mut self, limit: u64) -> usize {
        let bits = self.below(limit.ilog2().into());
        ((1 << bits) + self.below(1 << bits)) as usize
    }
}

/// The seed: printed by `cargo xtask torture`.
pub(crate) fn seed() -> u64 {
    std::env::var("SCROLLBACK_TORTURE").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}
