//! Requests to the installer, for command-line programs.
//!
//! Key types: [`Request`], [`ask`]. Deliberately not here: the text of reports, which the installer writes.

use alloc::string::String;
use core::fmt::{self, Write as _};

use contracts::directory::NameError;
use contracts::installer::{self, InstallOutcome, InstallerError, states};
use sip::exheap::ExVec;
use stdio::{Output, report};

use crate::access::AccessError;
use crate::answer::{BULK_LIMIT, REQUEST_LIMIT, wait};
use crate::namespace::{Namespace, block};

/// Path of the installer.
pub const PATH: &str = "/service/installer";

/// Maximum bytes of a package file.
pub const PACKAGE_BYTES_MAX: usize = 9 << 20;

/// Error of a request on which the installer gave no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallFailure {
    /// The installer could not be reached.
    Access(AccessError),
    /// The package file could not be read.
    Package(AccessError),
    /// The installer refused the request.
    Installer(InstallerError),
}

impl fmt::Display for InstallFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            InstallFailure::Access(AccessError::Name(NameError::NotFound)) => {
                "there is no installer in this system; `cargo sing install` changes its image from the host"
            }
            InstallFailure::Access(error) => return write!(formatter, "the installer: {error}"),
            InstallFailure::Package(error) => return write!(formatter, "the package file: {error}"),
            InstallFailure::Installer(InstallerError::NotPermitted) => {
                "whoever you are in this session may not change programs; `whoami` tells who, and the installer's \
                 parameter `changers` who may"
            }
            InstallFailure::Installer(InstallerError::Exhausted) => "the installer is out of memory; try again later",
        };
        formatter.write_str(text)
    }
}

impl<E: Into<AccessError>> From<E> for InstallFailure {
    fn from(error: E) -> InstallFailure {
        InstallFailure::Access(error.into())
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Install the program in the package file at this path.
    Install(&'a str),
    /// Replace an older version; the second field permits more access than that one had.
    Upgrade(&'a str, bool),
    /// Uninstall the program of this name.
    Uninstall(&'a str),
    /// Verify the whole system.
    Verify,
    /// Explain the access of the program of this name.
    Explain(&'a str),
}

/// Sends a request; `dry_run` only queries its outcome. Returns the outcome and the report.
///
/// # Errors
/// The package file cannot be read, or the installer gave no verdict.
pub fn ask(
    namespace: &mut Namespace,
    request: Request<'_>,
    dry_run: bool,
) -> Result<(InstallOutcome, String), InstallFailure> {
    let package = match request {
        Request::Install(path) | Request::Upgrade(path, _) => {
            Some(package_file(namespace, path).map_err(InstallFailure::Package)?)
        }
        _ => None,
    };
    let endpoint = namespace.open(PATH, installer::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        installer::ImpStart::Success { next } => Ok(next),
        installer::ImpStart::Refused { .. } => Err(NameError::Exhausted.into()),
        installer::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })?;
    match (request, package) {
        (Request::Upgrade(_, more), Some(package)) => reported(endpoint.upgrade(package, more, dry_run)),
        (_, Some(package)) => reported(endpoint.install(package, dry_run)),
        (Request::Uninstall(name), None) => reported(endpoint.uninstall(block(name)?, dry_run)),
        (Request::Explain(name), None) => reported(endpoint.explain(block(name)?)),
        (_, None) => reported(endpoint.verify()),
    }
}

/// Sends a request, prints the report, and returns the exit status: 0 if it was carried out, or could be.
pub fn finish(namespace: &mut Namespace, request: Request<'_>, dry_run: bool, mut output: Output) -> i32 {
    let (outcome, mut text) = match ask(namespace, request, dry_run) {
        Ok(answer) => answer,
        Err(InstallFailure::Package(error)) => {
            let path = match request {
                Request::Install(path) | Request::Upgrade(path, _) => path,
                _ => PATH,
            };
            return report::path_error(path, &error);
        }
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    let verdict = match (request, outcome) {
        (Request::Verify, InstallOutcome::Refused) => "the system has problems",
        (Request::Verify, _) => "the system is sound",
        (Request::Explain(_), _) => "",
        (_, InstallOutcome::Refused) => "nothing was changed",
        (_, InstallOutcome::Proved) => "accepted; nothing was changed (dry run)",
        (Request::Install(_), _) => "installed",
        (Request::Upgrade(..), _) => "upgraded; running instances keep the old version until they are restarted",
        (Request::Uninstall(_), _) => "uninstalled; running instances continue until they end",
    };
    if !verdict.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{verdict}");
    }
    let exit_status = i32::from(outcome == InstallOutcome::Refused);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(exit_status))
}

/// All requests have the same answers, each in a state of its own.
macro_rules! answered {
    ($($state:ident $event:ident,)*) => {
        trait Pending {
            fn answer(self) -> Result<(InstallOutcome, String), InstallFailure>;
        }
        $(impl Pending for installer::Imp<states::$state> {
            fn answer(self) -> Result<(InstallOutcome, String), InstallFailure> {
                match wait(self, BULK_LIMIT)? {
                    installer::$event::Reported { outcome, report, .. } => Ok((outcome, report.to_text())),
                    installer::$event::Failed { error, .. } => Err(InstallFailure::Installer(error)),
                    installer::$event::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
                }
            }
        })*
    };
}

answered! {
    ReadyAfterInstall ImpReadyAfterInstall,
    ReadyAfterUpgrade ImpReadyAfterUpgrade,
    ReadyAfterUninstall ImpReadyAfterUninstall,
    ReadyAfterVerify ImpReadyAfterVerify,
    ReadyAfterExplain ImpReadyAfterExplain,
}

fn reported(pending: impl Pending) -> Result<(InstallOutcome, String), InstallFailure> {
    pending.answer()
}

/// Reads a package file.
fn package_file(namespace: &mut Namespace, path: &str) -> Result<ExVec<u8>, AccessError> {
    let mut file = namespace.open_file(path)?;
    let size = usize::try_from(file.attributes()?.size_bytes).unwrap_or(usize::MAX);
    // A longer file is no package, which the installer detects from its beginning.
    let mut package = ExVec::new(size.min(PACKAGE_BYTES_MAX))?;
    let mut filled = 0;
    let mut pieces = file.pieces();
    while let Some(piece) = pieces.next()? {
        let count = piece.len().min(package.len() - filled);
        package[filled..filled + count].copy_from_slice(&piece[..count]);
        filled += count;
    }
    Ok(package)
}
