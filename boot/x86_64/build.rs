//! Linker arguments of the image: the script `kernel.ld`, and nothing of the host. That unused sections are dropped is
//! an argument of rustc's own, which `cargo sing bench images` leaves out.

fn main() {
    println!("cargo:rerun-if-changed=kernel.ld");
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    for argument in
        ["-nostdlib", "-nostartfiles", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,-z,max-page-size=4096"]
    {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{folder}/kernel.ld");
}
