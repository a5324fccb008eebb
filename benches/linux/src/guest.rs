//! Init process of a Linux guest whose web server is measured: configures the network, starts nginx and its backend,
//! and waits.
//!
//! The layout of the archive is defined together with `sing bench web`: modules in `/modules`, named in load order;
//! nginx's configuration; the files in `/files`.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::interface;

/// Path in the archive.
const MODULES: &str = "/modules";
const NGINX: &str = "/usr/sbin/nginx";
const SOCKET: &str = "/tmp/behind.socket";
const FILES: &str = "/files";
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

/// Serves at this address until the machine is powered off.
pub fn serve(address: Ipv4Addr) -> i32 {
    match start(address) {
        Ok(()) => loop {
            std::thread::sleep(Duration::from_secs(3_600));
        },
        Err(error) => {
            eprintln!("bench-linux: {error}");
            1
        }
    }
}

fn start(address: Ipv4Addr) -> io::Result<()> {
    interface::mount("proc", "/proc")?;
    interface::mount("devtmpfs", "/dev")?;
    let mut modules: Vec<_> = std::fs::read_dir(MODULES)?.flatten().map(|entry| entry.path()).collect();
    modules.sort();
    for module in modules {
        interface::load_module(&module).map_err(|error| said(&format!("module {}", module.display()), &error))?;
    }
    wait_for(Path::new("/sys/class/net/eth0"))?;
    interface::configure("lo", Ipv4Addr::LOCALHOST, MASK).map_err(|error| said("lo", &error))?;
    interface::configure("eth0", address, MASK).map_err(|error| said("eth0", &error))?;
    Command::new("/init").args(["web", SOCKET, FILES]).spawn().map_err(|error| said("what is behind nginx", &error))?;
    Command::new(NGINX).args(["-p", "/tmp", "-c", "/etc/nginx.conf"]).spawn().map_err(|error| said(NGINX, &error))?;
    println!("bench-linux: serving");
    Ok(())
}

/// Waits for a device, which may take a moment after its driver was loaded.
fn wait_for(path: &Path) -> io::Result<()> {
    interface::mount("sysfs", "/sys")?;
    for _ in 0..1_000 {
        if path.exists() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other(format!("{} does not appear", path.display())))
}

fn said(what: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}
