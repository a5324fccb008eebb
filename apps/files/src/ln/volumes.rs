//! The volume of a path, and where a link on it would lead.

use alloc::format;
use alloc::string::{String, ToString};

use client::namespace::Namespace;
use contracts::directory::NodeKind;

/// Returns the mount point of the path's volume.
pub fn volume_of(namespace: &mut Namespace, full: &str) -> Option<String> {
    let folders = full.match_indices('/').skip(1).map(|(slash, _)| &full[..slash]).chain([full]);
    let is_mount = |folder: &&str| matches!(namespace.attributes(folder), Ok((NodeKind::Mount, _)));
    folders.filter(is_mount).last().map(str::to_string)
}

/// Returns why a link at `link` would not resolve to the target as typed: it exists, but the volume would resolve it
/// elsewhere. A dangling link is fine.
pub fn misleads(namespace: &mut Namespace, target: &str, link: &str) -> Option<String> {
    let volume = volume_of(namespace, link)?;
    let folder = path::split_last(link).map_or("/", |(folder, _)| folder);
    let meant = path::absolute(folder, target);
    let found = followed(&volume, folder, target);
    if meant == found || namespace.attributes(&found).is_ok() || namespace.attributes(&meant).is_err() {
        return None;
    }
    let is_inside = meant == volume || meant.starts_with(&format!("{volume}/"));
    Some(if is_inside {
        format!(
            "a link begins at the root of its own volume, so it would lead to {found}, where nothing is; write the target \
             as it is seen from the link's folder"
        )
    } else {
        format!("{meant} is outside the volume {volume}; links stay within one; use `cp`")
    })
}

/// Returns the path to which the volume resolves the target of a link in this folder.
fn followed(volume: &str, folder: &str, target: &str) -> String {
    let below = folder.strip_prefix(volume).unwrap_or("");
    let inside = path::absolute(if target.starts_with('/') { "" } else { below }, target);
    path::join(volume, inside.trim_start_matches('/')).trim_end_matches('/').to_string()
}

#[cfg(test)]
mod tests {
    use super::followed;

    #[test]
    fn a_volume_looks_in_itself() {
        assert_eq!(followed("/fs/a", "/fs/a", "x"), "/fs/a/x");
        assert_eq!(followed("/fs/a", "/fs/a/b", "../x"), "/fs/a/x");
        assert_eq!(followed("/fs/a", "/fs/a/b", "../../../x"), "/fs/a/x");
        assert_eq!(followed("/fs/a", "/fs/a/b", "/x/y"), "/fs/a/x/y");
        assert_eq!(followed("/fs/a", "/fs/a/b", "/fs/a/x"), "/fs/a/fs/a/x");
        assert_eq!(followed("/fs/a", "/fs/a/b", "/"), "/fs/a");
    }
}
