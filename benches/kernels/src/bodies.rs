//! Five bodies that attract one another: floating-point numbers in small structures.

use crate::numbers::digest;

const STEPS: u32 = 60_000;
const STEP: f64 = 1.0 / 1024.0;
/// Steps of Newton's method for a root, from a first guess that is off by a few percent.
const REFINEMENTS: u32 = 4;

#[derive(Clone, Copy)]
struct Body {
    place: [f64; 3],
    speed: [f64; 3],
    mass: f64,
}

pub fn run() -> u64 {
    let mut bodies: [Body; 5] = core::array::from_fn(|number| {
        let number = number as f64;
        Body {
            place: [number * 2.0, number * number * 0.5 - 1.0, 0.25 * number],
            speed: [0.125 * number, 0.5 - 0.0625 * number, 0.03125],
            mass: 4.0 / (1.0 + number),
        }
    });
    for _ in 0..STEPS {
        step(&mut bodies);
    }
    digest(bodies.iter().flat_map(|body| body.place).map(f64::to_bits))
}

fn step(bodies: &mut [Body]) {
    for first in 0..bodies.len() {
        for second in first + 1..bodies.len() {
            let way: [f64; 3] = core::array::from_fn(|axis| bodies[first].place[axis] - bodies[second].place[axis]);
            // Softened, so that bodies that meet do not fly off.
            let squared = way.iter().map(|part| part * part).sum::<f64>() + 0.01;
            let inverse = inverse_root(squared);
            let pull = STEP * inverse * inverse * inverse;
            for (axis, part) in way.into_iter().enumerate() {
                bodies[first].speed[axis] -= part * bodies[second].mass * pull;
                bodies[second].speed[axis] += part * bodies[first].mass * pull;
            }
        }
    }
    for body in bodies {
        for (place, speed) in body.place.iter_mut().zip(body.speed) {
            *place += STEP * speed;
        }
    }
}

/// 1/√x of a positive number. A root is no operation of `core`.
fn inverse_root(number: f64) -> f64 {
    let mut guess = f64::from_bits(0x5fe6_eb50_c7b5_37a9 - (number.to_bits() >> 1));
    for _ in 0..REFINEMENTS {
        guess *= 1.5 - 0.5 * number * guess * guess;
    }
    guess
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_right() {
        for number in [0.01_f64, 0.5, 1.0, 3.0, 1e6] {
            assert!((inverse_root(number) * number.sqrt() - 1.0).abs() < 1e-14, "{number}");
        }
    }
}
