//! A product of matrices of floating-point numbers: loops over memory in order.

use alloc::vec;
use alloc::vec::Vec;

use crate::numbers::{Numbers, digest};

const SIDE: usize = 256;

pub fn run() -> u64 {
    let mut numbers = Numbers::of(0x3a721c);
    let mut matrix = || (0..SIDE * SIDE).map(|_| numbers.below(1000) as f64 / 8.0).collect::<Vec<f64>>();
    let (left, right) = (matrix(), matrix());
    digest(product(&left, &right, SIDE).into_iter().map(f64::to_bits))
}

/// The product of two square matrices, row by row.
fn product(left: &[f64], right: &[f64], side: usize) -> Vec<f64> {
    let mut product = vec![0.0; side * side];
    for (row, sums) in left.chunks_exact(side).zip(product.chunks_exact_mut(side)) {
        for (factor, others) in row.iter().zip(right.chunks_exact(side)) {
            for (sum, other) in sums.iter_mut().zip(others) {
                *sum += factor * other;
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_product_is_right() {
        assert_eq!(product(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 2), [19.0, 22.0, 43.0, 50.0]);
    }
}
