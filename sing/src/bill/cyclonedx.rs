//! A bill as CycloneDX, for supply-chain tools. Without serial number and time: the same package has the same document.

use manifest_model::Manifest;
use serde_json::{Value, json};

use super::{Bill, Material, Part};
use crate::keys::hexadecimal;

/// The document of a program's package.
pub fn document(manifest: &Manifest, bill: &Bill) -> Value {
    let mut program = json!({
        "type": "application",
        "bom-ref": manifest.principal(),
        "name": manifest.name,
        "version": manifest.version.to_string(),
        "publisher": manifest.publisher,
        "description": manifest.summary,
    });
    if let Some(digest) = manifest.code.image_digest() {
        program["hashes"] = json!([{ "alg": "BLAKE3", "content": hexadecimal(digest) }]);
    }
    let mut metadata = json!({ "component": program });
    if let Some(compiler) = &bill.compiler {
        metadata["tools"] =
            json!({ "components": [{ "type": "application", "name": "rustc", "version": compiler.rustc }] });
    }
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": metadata,
        "components": bill.crates.iter().map(component).collect::<Vec<_>>(),
    })
}

fn component(material: &Material) -> Value {
    let reference = format!("pkg:cargo/{}@{}", material.name, material.version);
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "name": material.name,
        "version": material.version,
        // Crates that only run during the build are not in the image.
        "scope": if material.part == Part::Image { "required" } else { "excluded" },
        "hashes": [{ "alg": "SHA-256", "content": material.sha256 }],
    });
    if !material.licence.is_empty() {
        component["licenses"] = json!([{ "expression": material.licence }]);
    }
    match &material.folder {
        // Not a crate of the registry, which has none of that name by the same authors.
        Some(folder) => component["properties"] = json!([{ "name": "singularity:folder", "value": folder }]),
        None => component["purl"] = json!(reference),
    }
    component
}
