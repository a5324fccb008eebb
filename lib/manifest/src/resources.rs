//! Reads the sections of a program's manifest on devices, required programs, quotas, supervision, permissions and its
//! domain.

use manifest_model::{
    AddressRange, Assertions, DeviceNeed, Domain, Permission, Quota, Requirement, Restart, Supervision, Version,
    WHOLE_PROGRAM,
};

use crate::diagnostic::Code;
use crate::objects::{self, DeviceObject};
use crate::program::{check_name, duplicate};
use crate::reader::{At, Report, Table, integer, range_remedy, wrong_type};

/// A device, in the form for the kernel and as an object of the program.
pub(crate) type Device = (DeviceNeed, DeviceObject);

/// Reads `[[device]]`; the place of each is that of its name.
pub(crate) fn devices(report: &Report, root: &Table<'_, '_>) -> Vec<At<Device>> {
    let mut devices: Vec<At<Device>> = Vec::new();
    for table in root.tables("device") {
        let name = table.required_text("name");
        let ports = ranges(report, &table, "ports");
        let memory = ranges(report, &table, "memory");
        let interrupts = interrupts(report, &table);
        let called = name.as_ref().map(|name| name.value.clone()).unwrap_or_default();
        let need = DeviceNeed { name: called, ports, memory, interrupts };
        let object = objects::read(report, &table, &need);
        table.close();
        let Some(name) = name else { continue };
        devices.push(At::new((need, object), name.span));
    }
    devices
}

/// Reads the ranges of a device, `base+bytes` each. The rules check whether they are possible.
fn ranges(report: &Report, table: &Table<'_, '_>, key: &'static str) -> Vec<AddressRange> {
    let mut ranges = Vec::new();
    for text in table.texts(key) {
        let range = AddressRange::parse(&text.value, u64::MAX);
        if range.is_none() {
            let message = format!("`{}` is no range of {key}", text.value);
            let remedy = "write the first address and how many there are: `0x3f8+8`".to_string();
            report.add(Code::BadRange, message, &text.span, "not a range", remedy);
        }
        ranges.extend(range);
    }
    ranges
}

/// Reads the interrupt lines of a device.
fn interrupts(report: &Report, table: &Table<'_, '_>) -> Vec<u32> {
    let mut lines: Vec<At<u32>> = Vec::new();
    for number in table.integers("interrupts") {
        let Ok(line) = u32::try_from(number.value) else {
            let message = format!("{} is no interrupt line", number.value);
            let remedy = range_remedy((0, i64::from(u32::MAX)));
            report.add(Code::BadInterrupt, message, &number.span, "out of range", remedy);
            continue;
        };
        match lines.iter().find(|other| other.value == line) {
            Some(first) => {
                let name = At::new(line.to_string(), number.span);
                duplicate(report, Code::BadInterrupt, "the interrupt", &name, &first.span);
            }
            None => lines.push(At::new(line, number.span)),
        }
    }
    lines.into_iter().map(|line| line.value).collect()
}

/// Reads `[[requires]]`.
pub(crate) fn requires(report: &Report, root: &Table<'_, '_>) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    for table in root.tables("requires") {
        let program = table.required_text("program");
        let version = table.text("version");
        table.close();
        let Some(program) = program else { continue };
        check_name(report, &program, "a program");
        let none = Version { major: 0, minor: 0, patch: 0 };
        let least = version.map_or(Some(none), |text| {
            let least = Requirement::parse_version(&text.value);
            if least.is_none() {
                let message = format!("`{}` does not say which versions will do", text.value);
                let remedy = "write the oldest that will do: `>=1.2` or `>=1.2.3`".to_string();
                report.add(Code::BadRequirement, message, &text.span, "`>=` and a version are wanted", remedy);
            }
            least
        });
        requirements.extend(least.map(|least| Requirement { program: program.value, least }));
    }
    requirements
}

/// Reads `[quota]`; missing keys have defaults.
pub(crate) fn quota(root: &Table<'_, '_>) -> Quota {
    let mut quota = Quota::default();
    let Some(table) = root.table("quota") else { return quota };
    let rows = [
        ("memory_kib", &mut quota.memory_kib),
        ("block_kib", &mut quota.block_kib),
        ("threads", &mut quota.threads),
        ("handles", &mut quota.handles),
        ("channels", &mut quota.channels),
        ("children", &mut quota.children),
        ("stack_kib", &mut quota.stack_kib),
    ];
    for (key, place) in rows {
        if let Some(number) = table.judged(key) {
            *place = number.value;
        }
    }
    table.close();
    quota
}

/// Reads `[supervision]`; missing keys have defaults.
pub(crate) fn supervision(root: &Table<'_, '_>) -> Supervision {
    let mut supervision = Supervision::default();
    let Some(table) = root.table("supervision") else { return supervision };
    if let Some(restart) = table.word("restart", Restart::from_word) {
        supervision.restart = restart.value;
    }
    let number = |key: &'static str| table.judged(key).map(|number| number.value);
    supervision.backoff_ms = number("backoff_ms").unwrap_or(supervision.backoff_ms);
    let most = supervision.backoff_max_ms.max(supervision.backoff_ms);
    supervision.backoff_max_ms = number("backoff_max_ms").unwrap_or(most);
    supervision.limit = number("limit");
    supervision.ending_ms = number("ending_ms").unwrap_or(0);
    table.close();
    supervision
}

/// Reads `[permissions]`.
pub(crate) fn permissions(root: &Table<'_, '_>) -> Vec<Permission> {
    let Some(table) = root.table("permissions") else { return Vec::new() };
    let mut permissions = Vec::new();
    for text in table.texts("list") {
        permissions.extend(table.as_word("permission", &text, Permission::from_word, Permission::WORDS));
    }
    table.close();
    permissions.into_iter().map(|permission| permission.value).collect()
}

/// Reads `[domain]`.
pub(crate) fn domain(root: &Table<'_, '_>) -> Domain {
    let Some(table) = root.table("domain") else { return Domain::Kernel };
    let domain = table.word("kind", Domain::from_word);
    table.close();
    domain.map_or(Domain::Kernel, |domain| domain.value)
}

/// Reads `[assert]`.
pub(crate) fn assertions(report: &Report, root: &Table<'_, '_>) -> Assertions {
    let mut assertions = Assertions::default();
    let Some(table) = root.table("assert") else { return assertions };
    let whole = table.judged("max-stack").map(|most| (WHOLE_PROGRAM.into(), most.value));
    assertions.max_stack.extend(whole);
    for (function, value) in table.entries("max-stack-of") {
        match integer(value.get_ref()).and_then(|most| u32::try_from(most).ok()) {
            Some(most) => assertions.max_stack.push((function.value, most)),
            None => wrong_type(report, &format!("`{}` of `max-stack-of`", function.value), "a number of bytes", value),
        }
    }
    let functions = |key| table.texts(key).into_iter().map(|function| function.value).collect();
    assertions.no_panic = functions("no-panic");
    assertions.no_alloc = functions("no-alloc");
    assertions.no_float = functions("no-float");
    assertions.functions_reached = table.judged("functions-reached").map(|most| most.value);
    table.close();
    assertions
}
