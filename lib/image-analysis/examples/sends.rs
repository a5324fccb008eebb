//! Lists sends.
fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap();
        let package = package::Package::parse(&bytes).unwrap();
        let Ok(p) = image_analysis::Program::read(package.image_bytes, image_check::Data::Refused, &|| ()) else {
            println!("{path}: -");
            continue;
        };
        let c = image_analysis::conform(&p, &package.manifest);
        println!("{path}: {} sends; {:?} unused {:?} FAULTS {:?}", c.sends, c.unknown, c.unused, c.faults);
    }
}
