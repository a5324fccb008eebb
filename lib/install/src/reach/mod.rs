//! What a program can reach: the closure of the endpoints that it can obtain.
//!
//! Key types: [`Map`] (all channels of a system that can come about), [`Reach`] (one program's part of it, for
//! people). Deliberately not here: what others do with what they are told. A program that may talk to a service has
//! that service's answers; it has none of the service's endpoints.

mod links;
mod patterns;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use package::{Code as ProgramCode, Permission};

pub use links::{How, Link, Links, Service};
pub use patterns::{Who, paths_meet};

use crate::installed::Installed;

/// Contracts that lead to something people ask about by a name.
const GROUPS: &[(&str, &[&str])] = &[
    ("the network", &["Tcp", "Udp", "Dns", "NicDevice", "IpConfiguration"]),
    ("files", &["File", "FileSystem", "VolumeManager"]),
    ("disks", &["Disk", "PartitionManager"]),
    ("the console", &["Console"]),
    ("the control of services", &["ServiceManager"]),
];

/// All channels of a system that can come about.
#[derive(Clone, Debug)]
pub struct Map<'a> {
    installed: &'a Installed,
    /// The channels.
    pub links: Links,
    /// What is served in the namespace.
    pub services: Vec<Service>,
}

/// What a program can reach, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The program as a principal, `program.publisher`.
    pub program: String,
    /// What it can be a client of, and how.
    pub reached: Vec<Reached>,
    /// Programs that can be its clients.
    pub clients: Vec<String>,
    /// Devices that it opens.
    pub devices: Vec<String>,
    /// Its permissions.
    pub permissions: Vec<Permission>,
    /// How many programs it can have started at a time; it can then have each of them do what that one may.
    pub children: u32,
    /// Whether its commands are run by the shell, which then reaches things for it.
    pub is_script: bool,
    /// What people ask about, and whether it is in reach.
    pub groups: Vec<Group>,
}

/// Something in reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The path, or pattern of paths, under which it is bound; none where the endpoint comes another way.
    pub path: Option<String>,
    /// The contract.
    pub contract: String,
    /// The program at the other end.
    pub provider: String,
    /// The steps by which it comes about, the last one last.
    pub chain: Vec<String>,
}

/// Whether something that people ask about is in reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// As people call it.
    pub name: &'static str,
    /// Where the system has it, and would have to be asked for it.
    pub places: Vec<String>,
    /// The steps by which the program comes to it; none: it does not.
    pub chain: Option<Vec<String>>,
}

impl<'a> Map<'a> {
    /// The channels of a system.
    pub fn of(installed: &'a Installed) -> Map<'a> {
        let (links, services) = links::search(installed);
        Map { installed, links, services }
    }

    /// The contracts whose endpoints come of one.
    pub fn family(&self, contract: usize) -> Vec<usize> {
        links::family(self.installed, &self.links, contract)
    }

    /// What a program can reach; nothing if there is no such program.
    pub fn reach(&self, name: &str) -> Option<Reach> {
        let index = self.installed.programs.iter().position(|program| program.manifest.name == name)?;
        let manifest = &self.installed.programs[index].manifest;
        let mut reached: Vec<Reached> = Vec::new();
        for (at, link) in self.links.of_importer(index).filter(|(_, link)| link.exporter != index) {
            let path = match &link.how {
                How::Bound { path } => Some(path.clone()),
                _ => None,
            };
            reached.push(Reached {
                path,
                contract: self.contract(link.contract).into(),
                provider: self.principal(link.exporter),
                chain: self.chain(at),
            });
        }
        reached.sort_by(|one, other| (&one.path, &one.contract).cmp(&(&other.path, &other.contract)));
        let clients = self.links.all.iter().filter(|link| link.exporter == index && link.importer != index);
        let mut clients: Vec<String> = clients.map(|link| self.principal(link.importer)).collect();
        clients.sort();
        clients.dedup();
        Some(Reach {
            program: manifest.principal(),
            reached,
            clients,
            devices: manifest.devices.iter().map(|device| device.name.clone()).collect(),
            permissions: manifest.permissions.clone(),
            children: manifest.quota.children,
            is_script: matches!(manifest.code, ProgramCode::Script { .. }),
            groups: GROUPS.iter().map(|(name, contracts)| self.group(index, name, contracts)).collect(),
        })
    }

    fn contract(&self, index: usize) -> &str {
        self.links.contracts.get(index).map_or("", String::as_str)
    }

    fn principal(&self, program: usize) -> String {
        self.installed.programs.get(program).map_or_else(String::new, |program| program.manifest.principal())
    }

    fn name(&self, program: usize) -> &str {
        self.installed.programs.get(program).map_or("", |program| program.manifest.name.as_str())
    }

    fn group(&self, program: usize, name: &'static str, contracts: &[&str]) -> Group {
        let seeds = contracts.iter().filter_map(|name| self.links.contracts.iter().position(|known| known == name));
        let mut members: Vec<usize> = seeds.flat_map(|contract| self.family(contract)).collect();
        members.sort_unstable();
        members.dedup();
        let served = self.services.iter().filter(|service| service.path != "/" && self.serves(service, &members));
        let mut places: Vec<String> = served.map(|service| service.path.clone()).collect();
        places.sort();
        places.dedup();
        Group { name, places, chain: self.way(program, |link| members.contains(&link.contract)) }
    }

    fn serves(&self, service: &Service, members: &[usize]) -> bool {
        match service.contract {
            Some(contract) => members.contains(&contract),
            None => self.links.all.iter().any(|link| {
                link.exporter == service.program
                    && members.contains(&link.contract)
                    && matches!(&link.how, How::Bound { path } if *path == service.path)
            }),
        }
    }

    /// The steps by which a program comes to a link of this sort: its own, or one of a program that it can start.
    pub fn way(&self, program: usize, is_meant: impl Fn(&Link) -> bool) -> Option<Vec<String>> {
        let own = self.links.of_importer(program).find(|(_, link)| link.exporter != program && is_meant(link));
        if let Some((at, _)) = own {
            return Some(self.chain(at));
        }
        let manifest = &self.installed.programs.get(program)?.manifest;
        let is_script = matches!(manifest.code, ProgramCode::Script { .. });
        if manifest.quota.children == 0 && !is_script {
            return None;
        }
        let others = self.links.all.iter().enumerate();
        let (at, link) = others.into_iter().find(|(_, link)| {
            link.importer != program && link.exporter != program && link.exporter != link.importer && is_meant(link)
        })?;
        let start = if is_script {
            format!(
                "`{}` is a script, and the shell that runs it can start `{}`",
                manifest.name,
                self.name(link.importer)
            )
        } else {
            let most = manifest.quota.children;
            format!(
                "`{}` can start programs (quota `children` {most}), such as `{}`",
                manifest.name,
                self.name(link.importer)
            )
        };
        let mut steps = Vec::from([start]);
        steps.extend(self.chain(at));
        Some(steps)
    }

    /// The steps by which a link comes about, the last one last.
    pub fn chain(&self, link: usize) -> Vec<String> {
        let mut steps = Vec::new();
        let mut open = Vec::from([link]);
        let mut seen: Vec<usize> = Vec::new();
        // A link was found after those that it comes from, so this ends.
        while let Some(at) = open.pop() {
            if seen.contains(&at) {
                continue;
            }
            seen.push(at);
            let Some(link) = self.links.all.get(at) else { continue };
            steps.push(self.step(link));
            match &link.how {
                How::Opened { folder } => open.push(*folder),
                How::Passed { over, from, .. } => {
                    open.extend(from);
                    open.push(*over);
                }
                How::Bound { .. } | How::Parent { .. } => {}
            }
        }
        steps.reverse();
        steps
    }

    fn step(&self, link: &Link) -> String {
        let (importer, exporter, contract) =
            (self.name(link.importer), self.name(link.exporter), self.contract(link.contract));
        match &link.how {
            How::Bound { path } => format!("`{importer}` binds {path} ({contract} of `{exporter}`), as a rule allows"),
            How::Opened { .. } => format!("`{importer}` opens {contract} in a folder of `{exporter}`"),
            How::Parent { child, slot } => {
                let parent = if *child == link.importer { exporter } else { importer };
                format!("`{parent}` can start `{}` with its endpoint `{slot}` ({contract})", self.name(*child))
            }
            How::Passed { message, sender, over, from } => {
                let through = self.links.all.get(*over).map_or("", |over| self.contract(over.contract));
                let receiver = self
                    .links
                    .all
                    .get(*over)
                    .map_or(0, |over| if over.importer == *sender { over.exporter } else { over.importer });
                let (receiver, sender) = (self.name(receiver), self.name(*sender));
                let what = if from.is_some() { "one that it has" } else { "a new one" };
                let end = if receiver == importer { "importing" } else { "exporting" };
                format!("`{sender}` sends `{receiver}` the {end} end of {contract}, {what}, with {through}.{message}")
            }
        }
    }
}

impl Reach {
    /// The paths that it can bind, each once.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.reached.iter().filter_map(|reached| reached.path.as_deref()).collect();
        paths.dedup();
        paths
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// What this one comes to and another does not, a phrase each: endpoints, devices, permissions, programs.
    pub fn beyond(&self, before: &Reach) -> Vec<String> {
        let mut more = Vec::new();
        for reached in &self.reached {
            let had = |other: &Reached| other.contract == reached.contract && other.provider == reached.provider;
            if !before.reached.iter().any(had) {
                let path = reached.path.as_deref().map_or(String::new(), |path| format!(" at {path}"));
                more.push(format!("{} of {}{path}", reached.contract, reached.provider));
            }
        }
        let devices = self.devices.iter().filter(|device| !before.devices.contains(device));
        more.extend(devices.map(|device| format!("the device `{device}`")));
        let permissions = self.permissions.iter().filter(|permission| !before.permissions.contains(permission));
        more.extend(permissions.map(|permission| format!("the permission `{permission}`")));
        if self.children > 0 && before.children == 0 {
            more.push("the start of other programs".into());
        }
        more
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<String> = Vec::new();
        for reached in &self.reached {
            let line = match &reached.path {
                Some(path) => format!("{path} ({} of {})", reached.contract, reached.provider),
                None => format!("{} of {}", reached.contract, reached.provider),
            };
            if !shown.contains(&line) {
                shown.push(line);
            }
        }
        shown.extend(self.devices.iter().map(|device| format!("the device `{device}`")));
        shown.extend(self.permissions.iter().map(|permission| format!("what the permission `{permission}` gives")));
        if self.children > 0 {
            shown.push(format!("every other program, by starting it ({} at a time)", self.children));
        }
        if self.is_script {
            shown.push("what the shell reaches that runs it".into());
        }
        if shown.is_empty() {
            shown.push("nothing".into());
        }
        for line in shown {
            writeln!(f, "can reach: {line}")?;
        }
        for group in &self.groups {
            let places =
                if group.places.is_empty() { "nowhere in this system".into() } else { group.places.join(", ") };
            match &group.chain {
                Some(chain) => writeln!(f, "can reach: {}: {}", group.name, chain.join("; "))?,
                None if group.places.is_empty() => writeln!(f, "cannot reach: {} ({places})", group.name)?,
                None => writeln!(f, "cannot reach: {} (no way to {places})", group.name)?,
            }
        }
        if !self.clients.is_empty() {
            writeln!(f, "can be reached by: {}", self.clients.join(", "))?;
        }
        Ok(())
    }
}
