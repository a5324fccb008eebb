//! What a WebAssembly program's manifest has of its template's, and of its own.

use manifest::Program;

const HEAD: &str =
    "[program]\nname = \"guest\"\nversion = \"0.1.0\"\nabi = 1\ncategory = \"service\"\nsummary = \"a guest\"\n";
const TEMPLATE: &str = "\n[[contract]]\nname = \"Directory\"\nuse = \"import\"\n\n[[endpoint]]\nname = \"namespace\"\ncontract = \"Directory\"\nside = \"imp\"\nstate = \"READY\"\nfrom = \"/\"\n";
const SERVER: &str = "\n[code]\nwasm = \"guest.wasm\"\n\n[[contract]]\nname = \"Tally\"\nuse = \"export\"\nwaits-for = [\"Disk\"]\n\n[[contract]]\nname = \"Disk\"\nuse = \"import\"\n\n[[contract]]\nname = \"ServiceProvider\"\nuse = \"export\"\n\n[[endpoint]]\nname = \"clients\"\ncontract = \"ServiceProvider\"\nside = \"exp\"\nstate = \"START\"\nfrom = \"parent\"\n\n[[provide]]\npath = \"/service/tally\"\ncontract = \"Tally\"\n";

fn program(text: &str) -> Program {
    manifest::program("manifest.toml", &format!("{HEAD}{text}"), None).expect("a manifest")
}

fn inherited(text: &str) -> Result<Program, &'static str> {
    let mut guest = program(text);
    guest.inherit(&program(TEMPLATE)).map(|()| guest)
}

#[test]
fn contracts_and_endpoints_of_a_module_come_behind_those_of_its_template() {
    let Program { manifest, modules, .. } = inherited(SERVER).expect("a server");
    let names: Vec<&str> = manifest.contracts.iter().map(|contract| contract.name.as_str()).collect();
    assert_eq!(names, ["Directory", "Tally", "Disk", "ServiceProvider"]);
    assert_eq!(modules.len(), names.len());
    let of = |index: u16| names[usize::from(index)];
    let slots: Vec<(&str, &str)> =
        manifest.endpoints.iter().map(|slot| (slot.name.as_str(), of(slot.contract))).collect();
    assert_eq!(slots, [("namespace", "Directory"), ("clients", "ServiceProvider")]);
    assert_eq!(of(manifest.provides[0].contract), "Tally");
    let awaited = manifest.contracts[1].waits_for.as_ref().expect("a list");
    assert_eq!(of(awaited[0].contract), "Disk");
    assert_eq!(manifest.fits_template(&program(TEMPLATE).manifest), Ok(()));
}

#[test]
fn what_is_the_templates_is_not_the_modules() {
    let module = "\n[code]\nwasm = \"guest.wasm\"\n";
    let contract = format!("{module}\n[[contract]]\nname = \"Directory\"\nuse = \"export\"\n");
    assert_eq!(inherited(&contract).err(), Some("a [[contract]] by which its template works"));
    let slot = TEMPLATE.replace("\"Directory\"", "\"Tally\"");
    assert_eq!(inherited(&format!("{module}{slot}")).err(), Some("an [[endpoint]] of a name that its template has"));
    let device = format!("{module}\n[[device]]\nname = \"disk\"\n");
    assert_eq!(inherited(&device).err(), Some("a [[device]]"));
}
