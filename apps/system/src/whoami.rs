//! Prints the principal of this process, as seen by every service.

use alloc::format;
use alloc::string::String;

use sip::principal;
use stdio::Output;

sip::startup!("whoami/manifest.toml");

/// Prints the principal.
pub fn main(startup: Startup) -> i32 {
    let own = principal::own();
    let text = if startup.role {
        role(&own).map_or(String::new(), |role| format!("{role}\n"))
    } else if startup.links {
        own.split(principal::JOINT).map(|link| format!("{link}\n")).collect()
    } else {
        format!("{own}\n")
    };
    let mut output = Output::new(startup.output);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}

/// Returns the role of the newest link that has one.
fn role(principal: &str) -> Option<&str> {
    principal.rsplit(principal::JOINT).find_map(|link| link.split_once('@')).map(|(_, role)| role)
}

#[cfg(test)]
mod tests {
    use super::role;

    #[test]
    fn the_newest_role_counts() {
        assert_eq!(role("whoami.singularity"), None);
        assert_eq!(role("login.singularity@alice + shell.singularity + whoami.singularity"), Some("alice"));
        assert_eq!(role("login.a@alice + su.a@bob + shell.a"), Some("bob"));
    }
}
