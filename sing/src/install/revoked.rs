//! Revocations by the user, for images that were built before: they apply to packages installed into these from then
//! on, and are reported by verification.
//!
//! Deliberately not here: revocations by the system itself, which its image contains.

use install::{Code, Finding, Line, Report, Request};
use manifest_model::{Revoked, Trust};
use package::Delivery;

use crate::failure::Outcome;
use crate::keys::store::Store;

/// Returns the user's current revocations.
///
/// # Errors
/// The list is damaged.
pub fn of_user() -> Outcome<Vec<Revoked>> {
    let mut own = Trust::default();
    Store::of_user().add_to(&mut own)?;
    Ok(own.revoked)
}

/// Returns findings for installed packages.
pub fn lines(packages: &[&[u8]], revoked: &[Revoked]) -> Vec<Line> {
    packages.iter().filter_map(|package| finding(package, revoked)).map(Line::refused).collect()
}

/// Returns the refusal of a request, if any.
pub fn against(request: &Request<'_>, revoked: &[Revoked]) -> Option<Report> {
    let package = match request {
        Request::Install { package, .. } | Request::Upgrade { package, .. } => *package,
        Request::Uninstall { .. } => return None,
    };
    let lines = lines(&[package], revoked);
    (!lines.is_empty()).then_some(Report { lines, reach: None })
}

/// Invalid packages are refused elsewhere.
fn finding(package: &[u8], revoked: &[Revoked]) -> Option<Finding> {
    let package = Delivery::parse(package).ok()?.package;
    let counts = |revoked: &&Revoked| match revoked {
        Revoked::Key(key) => package.key == *key || package.chain.iter().any(|one| one.issuer == *key),
        Revoked::Serial(serial) => package.chain.iter().any(|one| one.serial == *serial),
    };
    let found = revoked.iter().find(counts)?;
    let (code, what) = match found {
        Revoked::Key(_) => (Code::RevokedKey, "the key"),
        Revoked::Serial(_) => (Code::RevokedSerial, "the certificate"),
    };
    let name = &package.manifest.name;
    let what = format!("`{name}` is signed through {what} {found}, which you have revoked");
    Some(Finding::new(code, name, what, "install a package with another signer"))
}

#[cfg(test)]
mod tests {
    use manifest_model::{PublicKey, Rights};
    use package::May;
    use package_build::{Grant, SecretKey, Signer};

    use super::*;
    use crate::install::sample::package;

    #[test]
    fn what_was_revoked_since_is_not_installed() {
        let root = SecretKey::from_bytes(&[1; 32]);
        let daily = SecretKey::from_bytes(&[2; 32]);
        let grant = Grant { publishers: "singularity", may: May::Sign, rights: Rights::NATIVE };
        let certificate =
            package_build::issue_certificate(&root, daily.public(), grant, 7).expect("a name of a publisher");
        let (issuer, key) = (root.public(), daily.public());
        let package = package(&Signer { key: daily, chain: vec![certificate] }).expect("a package");
        let install = Request::Install { package: &package, at_boot: false, allow: &[] };
        let upgrade = Request::Upgrade { package: &package, more: false };
        for (revoked, code) in [
            (Revoked::Key(key), Code::RevokedKey),
            (Revoked::Key(issuer), Code::RevokedKey),
            (Revoked::Serial(7), Code::RevokedSerial),
        ] {
            for request in [&install, &upgrade] {
                let report = against(request, &[Revoked::Serial(1), revoked]).expect("it was revoked");
                assert_eq!(report.codes(), [code], "{revoked}");
            }
            assert_eq!(lines(&[b"no package", &package], &[revoked]).len(), 1);
            // Removing it remains possible.
            assert!(against(&Request::Uninstall { name: "bench-install" }, &[revoked]).is_none());
        }
        let others = [Revoked::Serial(8), Revoked::Key(PublicKey([3; 32]))];
        assert!(against(&install, &others).is_none() && against(&install, &[]).is_none());
    }
}
