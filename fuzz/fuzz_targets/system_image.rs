//! A system image: as bytes, and as a rightly signed system manifest.
#![no_main]

use package::{SecretKey, SystemImage, SystemManifest, Trust};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    if kind % 2 == 0 {
        let _ = install::system_of(rest);
        return;
    }
    let key = SecretKey::from_bytes(&[7; 32]);
    let Ok(mut manifest) = SystemManifest::decode(rest) else { return };
    assert_eq!(SystemManifest::decode(&manifest.encode()).as_ref(), Ok(&manifest));
    manifest.trust = Trust::in_key(key.public());
    let Ok(image) = SystemImage::build(&manifest, &[], &key) else { return };
    let Ok((_, installed)) = install::system_of(&image) else { panic!("it was signed with a root") };
    let _ = install::verify(&installed).to_string();
    let _ = install::changed(&image, &install::Request::Uninstall { name: "x" }, &key);
});
