//! Contents that a program can recompute, to detect an overwritten word.

/// Returns the word at `index` of the canary `seed`: splitmix64, so that canaries differ.
pub fn word(seed: u64, index: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Fills words with the canary `seed`.
pub fn fill(words: &mut [u64], seed: u64) {
    for (index, target) in (0..).zip(words) {
        *target = word(seed, index);
    }
}

/// Returns the first word that differs from [`fill`]: its index and value.
pub fn first_damage(words: &[u64], seed: u64) -> Option<(u64, u64)> {
    (0..).zip(words).find(|&(index, &found)| found != word(seed, index)).map(|(index, &found)| (index, found))
}
