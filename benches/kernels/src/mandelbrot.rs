//! The Mandelbrot set: floating-point numbers in registers, hardly any memory.

use crate::numbers::digest;

const SIDE: u32 = 256;
const MAX_STEPS: u32 = 250;

pub fn run() -> u64 {
    let rows = (0..SIDE).map(|y| (0..SIDE).map(move |x| steps(scaled(x, 3.0, -2.2), scaled(y, 2.4, -1.2))));
    digest(rows.flatten().map(u64::from))
}

fn scaled(place: u32, range: f64, least: f64) -> f64 {
    least + range * f64::from(place) / f64::from(SIDE)
}

/// Steps until a point leaves the circle of radius 2, or the maximum.
fn steps(real: f64, imaginary: f64) -> u32 {
    let (mut x, mut y) = (0.0, 0.0);
    for step in 0..MAX_STEPS {
        let (squared_x, squared_y) = (x * x, y * y);
        if squared_x + squared_y > 4.0 {
            return step;
        }
        y = 2.0 * x * y + imaginary;
        x = squared_x - squared_y + real;
    }
    MAX_STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_stays_and_two_leaves() {
        assert_eq!((steps(0.0, 0.0), steps(2.0, 2.0)), (MAX_STEPS, 1));
    }
}
