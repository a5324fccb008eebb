//! `[trust]` of a system manifest: publishers whose programs the system accepts.
//!
//! Deliberately not here: the roots added by the builder, which are those of its user.

use manifest_model::trust::is_publishers;
use manifest_model::{Policy, PublicKey, Revoked, Rights, Root, Trust};

use crate::diagnostic::Code;
use crate::reader::{At, Report, Table, one_of};

/// Names of the policies.
pub(crate) const POLICIES: &[&str] = &["signed-only", "allow-publisher", "quarantine-unsigned"];

/// Merges the files: the first with a policy decides it; roots and revocations add up. `files`: the system manifest,
/// then its bases.
pub(crate) fn read(report: &Report, files: &[Table<'_, '_>]) -> Trust {
    let mut trust = Trust::default();
    let mut decided = false;
    for table in files.iter().filter_map(|file| file.table("trust")) {
        let policy = policy(report, &table);
        if let Some(policy) = policy.filter(|_| !decided) {
            trust.policy = policy;
            decided = true;
        }
        for text in table.bounded_texts("revoked") {
            match Revoked::parse(&text.value) {
                Some(revoked) => trust.revoked.push(revoked),
                None => {
                    let message = format!("`{}` is neither the serial number of a certificate nor a key", text.value);
                    let remedy = "write the 16 digits of a serial number or the 64 of a key, as `cargo sing key list` prints them".to_string();
                    report.add(Code::BadRevocation, message, &text.span, "revokes nothing", remedy);
                }
            }
        }
        for root in table.bounded_tables("root") {
            trust.roots.extend(read_root(report, &root));
            root.close();
        }
        table.close();
    }
    trust
}

fn policy(report: &Report, table: &Table<'_, '_>) -> Option<Policy> {
    let word = table.text("policy");
    let allow = table.bounded_texts("allow");
    for pattern in &allow {
        check_publishers(report, pattern);
    }
    let patterns = || allow.iter().map(|pattern| pattern.value.clone()).collect();
    let policy = match word.as_ref().map(|word| word.value.as_str()) {
        None => None,
        Some("signed-only") => Some(Policy::SignedOnly),
        Some("quarantine-unsigned") => Some(Policy::QuarantineUnsigned),
        Some("allow-publisher") => Some(Policy::AllowPublisher(patterns())),
        Some(other) => {
            let span = word.as_ref().map_or(&table.span, |word| &word.span);
            let message = format!("`{other}` is no policy of [trust]");
            report.add(Code::UnknownWord, message, span, "this word is not known", one_of(other, POLICIES));
            return None;
        }
    };
    let asks = matches!(policy, Some(Policy::AllowPublisher(_)));
    if let Some(first) = allow.first().filter(|_| !asks) {
        let message = "publishers are allowed, but the policy does not ask who is".to_string();
        let remedy = "add `policy = \"allow-publisher\"`, or remove `allow`".to_string();
        report.add(Code::AllowMismatch, message, &first.span, "this changes nothing", remedy);
    }
    if let Some(word) = word.filter(|_| asks && allow.is_empty()) {
        let message = "the policy allows no publisher: no program could be started".to_string();
        let remedy = "add `allow = [\"singularity\"]`, or take another policy".to_string();
        report.add(Code::AllowMismatch, message, &word.span, "nobody is allowed", remedy);
    }
    policy
}

fn read_root(report: &Report, table: &Table<'_, '_>) -> Option<Root> {
    let key = table.required_text("key");
    let publishers = table.required_text("publishers");
    let systems = table.flag("systems").value;
    let rights = if table.flag("native").value { Rights::NATIVE } else { Rights::NONE };
    if let Some(publishers) = &publishers {
        check_publishers(report, publishers);
    }
    let key = key?;
    let parsed = PublicKey::parse(&key.value).filter(|&key| key != PublicKey::NONE);
    if parsed.is_none() {
        let message = format!("`{}` is no public key", key.value);
        let remedy = "write the 64 digits that `cargo sing key list` prints".to_string();
        report.add(Code::BadPublicKey, message, &key.span, "not a key", remedy);
    }
    Some(Root { key: parsed?, publishers: publishers?.value, systems, rights })
}

fn check_publishers(report: &Report, pattern: &At<String>) {
    if !is_publishers(&pattern.value) {
        let message = format!("`{}` is no pattern of publishers", pattern.value);
        let remedy = "write a name, `name-*` for all whose names begin so, or `*` for all".to_string();
        report.add(Code::BadPublishers, message, &pattern.span, "covers nobody", remedy);
    }
}
