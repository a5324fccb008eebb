//! The module `spectest`, which the suite imports: constants, a table, a memory, and functions that do nothing here.

/// What modules can import. What they import beyond it are functions of other instances; see `wasm-spec-script`.
pub const IMPORTS: &str = "func spectest print
func spectest print_i32 i32
func spectest print_i64 i64
func spectest print_f32 f32
func spectest print_f64 f64
func spectest print_i32_f32 i32 f32
func spectest print_f64_f64 f64 f64
global spectest global_i32 i32 666
global spectest global_i64 i64 666
global spectest global_f32 f32 1143383654
global spectest global_f64 f64 4649074691427585229
table spectest table funcref 10 20
memory spectest memory 1 2
";

/// Number of lines of the list.
pub(crate) const COUNT: usize = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_this_many_lines_and_the_constants_of_the_suite() {
        assert_eq!(IMPORTS.lines().count(), COUNT);
        for bits in [u64::from(666.6f32.to_bits()), 666.6f64.to_bits()] {
            assert!(IMPORTS.contains(&alloc::format!(" {bits}\n")), "{bits}");
        }
    }
}
