fn main() {
    let mut args = std::env::args().skip(1);
    let file = std::fs::read(args.next().unwrap()).unwrap();
    let t = std::time::Instant::now();
    let p = image_analysis::Program::read(&file, image_check::Data::Refused, &|| ()).unwrap();
    println!("{} functions in {:?}", p.functions.len(), t.elapsed());
    let (mut f, mut k, mut m, mut q) = (0, 0, 0, 0);
    for x in &p.functions {
        for c in &x.calls {
            match c.target {
                image_analysis::Target::Function(_) => f += 1,
                image_analysis::Target::Kernel(_) => k += 1,
                image_analysis::Target::Method(_) => m += 1,
                image_analysis::Target::Pointer => q += 1,
            }
        }
    }
    println!(
        "calls: {f} direct {k} kernel {m} method {q} pointer; dynamic: {:?}",
        p.functions.iter().filter(|f| f.stack.is_none()).map(|f| &f.name).collect::<Vec<_>>()
    );
    for name in args {
        let mut a = manifest_model::Assertions::default();
        a.max_stack.push((name.clone(), 64));
        a.no_panic.push(name.clone());
        a.no_alloc.push(name.clone());
        a.no_float.push(name.clone());
        a.functions_reached = Some(10);
        let r = image_analysis::assess(&p, &a);
        for x in r.proved {
            println!("  proved {x}");
        }
        for x in r.faults {
            println!("  FAULT {}", x.what);
        }
    }
}
