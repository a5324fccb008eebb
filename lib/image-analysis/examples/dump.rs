//! Lists what holds of each function.
fn main() {
    let mut args = std::env::args().skip(1);
    let file = std::fs::read(args.next().unwrap()).unwrap();
    let p = image_analysis::Program::read(&file, image_check::Data::Refused, &|| ()).unwrap();
    let filter = args.next().unwrap_or_default();
    for f in &p.functions {
        if !f.name.contains(&filter) || f.name.is_empty() {
            continue;
        }
        let name = f.name.clone();
        let mut a = manifest_model::Assertions::default();
        a.max_stack.push((name.clone(), 100000));
        a.no_panic.push(name.clone());
        a.no_alloc.push(name.clone());
        a.no_float.push(name.clone());
        let r = image_analysis::assess(&p, &a);
        println!(
            "{} ({} bytes): {}",
            name,
            f.end - f.start,
            r.proved.iter().map(|x| x.replace(&format!("`{name}`"), "")).collect::<Vec<_>>().join(";")
        );
    }
}
