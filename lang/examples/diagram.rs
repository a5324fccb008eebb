//! Draws the contracts of files as `.svg` files in the folder that is the first argument.

use lang::{Colours, SourceFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = std::path::PathBuf::from(arguments.next().ok_or("name a folder, then contract files")?);
    let files: Result<Vec<SourceFile>, std::io::Error> =
        arguments.map(|path| Ok(SourceFile::new(&path, std::fs::read_to_string(&path)?))).collect();
    let compiled = lang::compile(&files?);
    eprint!("{}", compiled.render(Colours::Never));
    for contract in compiled.unit.iter().flat_map(|unit| &unit.contracts) {
        let name = format!("{}.svg", lang::rust_module_name(&contract.name));
        std::fs::write(folder.join(name), lang::emit_svg(contract))?;
    }
    Ok(())
}
