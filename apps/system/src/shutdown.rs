//! Powers off or restarts the machine after stopping every service.

use client::namespace::Namespace;
use client::services;
use stdio::report;

sip::startup!("shutdown/manifest.toml");

/// Sends the request to the service manager. This program ends with all others, so it returns only on failure.
pub fn main(startup: Startup) -> i32 {
    let Ok(exit_status) = u8::try_from(startup.status) else {
        report::error(format_args!("invalid exit status {}; use 0 to 255", startup.status));
        return 1;
    };
    let mut namespace = Namespace::new(startup.namespace);
    let asked = match startup.restart {
        true => services::restart(&mut namespace),
        false => services::power_off(&mut namespace, u32::from(exit_status)),
    };
    match asked {
        Ok(()) => 0,
        Err(error) => {
            report::error(format_args!("the machine was not ended: {error}"));
            1
        }
    }
}
