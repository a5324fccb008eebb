//! The boot information: the system manifest, the manifests of the installed programs, and this program's own
//! parameters.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use manifest_model::{Instance, Manifest, SystemManifest};
use sip::{Deadline, Status, thread};

/// Maximum attempts to read what the machine boots from, since a lack of memory may pass.
const MAX_ATTEMPTS: usize = 10;
const RETRY_MS: u64 = 20;

/// What `read` gives, asked again while the machine is out of memory.
fn again<T>(mut read: impl FnMut() -> Result<T, Status>) -> Result<T, Status> {
    for _ in 1..MAX_ATTEMPTS {
        match read() {
            Err(Status::Exhausted) => thread::sleep(Deadline::after_ms(RETRY_MS)),
            answer => return answer,
        }
    }
    read()
}

/// The machine as seen by its root program.
pub struct Machine {
    system: SystemManifest,
    programs: Vec<Manifest>,
}

impl Machine {
    /// Reads all manifests from the kernel.
    ///
    /// # Errors
    /// One is missing or malformed; the text is for a message.
    pub fn read() -> Result<Machine, String> {
        let bytes = again(sip::diagnostics::system_manifest)
            .map_err(|status| format!("no system manifest: {}", status.text()))?;
        let system = SystemManifest::decode(&bytes)
            .map_err(|_| String::from("the system manifest cannot be read; build the system image again"))?;
        let unread = |status: Status| format!("a manifest cannot be read: {}", status.text());
        let mut programs = Vec::new();
        for bytes in again(|| client::programs::manifests().collect::<Result<Vec<_>, _>>()).map_err(unread)? {
            let manifest = Manifest::decode(&bytes)
                .map_err(|_| format!("the manifest of program {} cannot be read; build it again", programs.len()))?;
            programs.push(manifest);
        }
        Ok(Machine { system, programs })
    }

    /// The system manifest.
    pub fn system(&self) -> &SystemManifest {
        &self.system
    }

    /// The instance with this index.
    pub fn instance(&self, index: usize) -> &Instance {
        &self.system.instances[index]
    }

    /// The manifest of the program with this name.
    pub fn program(&self, name: &str) -> Option<&Manifest> {
        self.programs.iter().find(|manifest| manifest.name == name)
    }

    /// Indices of the instances in the order in which they start.
    pub fn boot_order(&self) -> Result<Vec<usize>, String> {
        boot_order::boot_order(&self.system, |name| self.program(name))
            .map_err(|error| format!("the system manifest has no boot order: {error:?}; run `sing check`"))
    }

    /// Whether this machine can run an instance, given the `absent` ones. Bus drivers report devices only while they
    /// run, so call this once all that the instance waits for is up.
    pub fn can_run(&self, index: usize, absent: impl Fn(usize) -> bool) -> bool {
        boot_order::can_run(&self.system, |name| self.program(name), index, has_device, absent)
    }

    /// The values of this program's own parameter: one, or several of a repeated one.
    pub fn own_parameter(&self, name: &str) -> Vec<String> {
        let own = self.program(&self.system.root).and_then(|manifest| manifest.parameter(name));
        let Some((index, declared)) = own else { return Vec::new() };
        let Ok(Some(bytes)) = sip::config::parameter_bytes(index) else { return Vec::new() };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !declared.repeated {
            return Vec::from([text(&bytes)]);
        }
        // Each value is terminated by a zero byte.
        bytes.split_inclusive(|&byte| byte == 0).map(|value| text(value.strip_suffix(b"\0").unwrap_or(value))).collect()
    }
}

fn has_device(name: &str) -> bool {
    // Without permission to query, opening the device reports the error.
    sip::device::exists(name).unwrap_or(true)
}
