//! Service supervisor, a stand-in for systemd: starts a site without standard input, receives its notifications, sends
//! signals and checks for leftovers.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::live::free_port;
use crate::tool::{built_system, repository, sing, target};
use crate::web::WebClient;

/// Timeout for a start or an end on a busy host.
const MOST: Duration = Duration::from_secs(180);
/// Timeout for a killed process to release its port.
const MAX_FOR_PORT: Duration = Duration::from_secs(5);

/// Supervisor of a site, like systemd: gives it no input, receives its notifications, and sends signals.
pub struct Supervisor {
    folder: TempDir,
    socket: UnixDatagram,
    port: u16,
}

/// A started service.
pub struct Running {
    tool: Child,
}

impl Supervisor {
    /// Prepares a small site without starting it.
    pub fn of_small_site() -> Supervisor {
        built_system("web");
        let folder = tempfile::tempdir().expect("a folder");
        let site = folder.path().join("site");
        fs::create_dir_all(site.join("dir00001")).expect("a folder");
        fs::write(site.join("dir00001/class2_3"), "a line of the file itself\n").expect("a file can be written");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        socket.set_read_timeout(Some(MOST)).expect("a limit");
        Supervisor { folder, socket, port: free_port() }
    }

    /// Folder of all its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Folder that is served.
    pub fn site(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    /// Disk of the access log.
    pub fn log(&self) -> PathBuf {
        target().join(format!("sing/web/log-{}.img", self.port))
    }

    /// Port of this host.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Standard error of the service.
    pub fn errors(&self) -> String {
        fs::read_to_string(self.folder.path().join("errors")).unwrap_or_default()
    }

    /// Starts the service and waits until it serves.
    #[track_caller]
    pub fn start(&self, words: &[&str]) -> Running {
        self.start_command(self.command(words))
    }

    /// The command that starts the service.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(sing());
        command.args(["run", "--web"]).arg(self.site()).args(["--port", &self.port.to_string()]).args(words);
        command
    }

    /// Starts a command that serves at the port, and waits until it does.
    #[track_caller]
    pub fn start_command(&self, mut command: Command) -> Running {
        let errors = fs::File::create(self.folder.path().join("errors")).expect("a file");
        command.current_dir(repository()).env("NOTIFY_SOCKET", self.folder.path().join("notify"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let running = Running { tool: command.spawn().expect("the tool starts") };
        self.is_told("READY=1");
        // No retry: after the notification clients can connect.
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("the port is open");
        running
    }

    #[track_caller]
    fn is_told(&self, expected: &str) {
        assert_eq!(self.told(expected), expected, "{}", self.errors());
    }

    /// Receives the next datagram, which must be `expected`.
    #[track_caller]
    fn told(&self, expected: &str) -> String {
        let mut bytes = [0; 64];
        let count = self.socket.recv(&mut bytes);
        let count = count.unwrap_or_else(|error| panic!("`{expected}` is not told ({error}):\n{}", self.errors()));
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    /// Reloads the service, as systemd's `ExecReload=kill -HUP $MAINPID`, and waits until it is done.
    #[track_caller]
    pub fn reload(&self, running: &Running) {
        running.signal("HUP");
        let told = self.told("RELOADING=1");
        let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|time| time.parse::<u64>().ok());
        assert!(time.is_some(), "{told}");
        self.is_told("READY=1");
    }

    /// Stops the service, which must exit cleanly.
    #[track_caller]
    pub fn stop(&self, mut running: Running) {
        running.signal("TERM");
        self.is_told("STOPPING=1");
        assert_eq!(running.tool.wait().expect("it ends").code(), Some(0), "{}", self.errors());
        self.port_is_free();
    }

    /// Kills the whole machine.
    #[track_caller]
    pub fn kill(&self, mut running: Running) {
        running.signal("KILL");
        assert_eq!(running.tool.wait().expect("it ends").code(), None);
        self.port_is_free();
    }

    #[track_caller]
    fn port_is_free(&self) {
        let begin = Instant::now();
        while let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)) {
            assert!(begin.elapsed() < MAX_FOR_PORT, "port {} is in use still: {error}", self.port);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns a client of the service.
    pub fn client(&self) -> WebClient {
        WebClient::connect(self.port)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Leftovers take space and do no harm.
        let _ = fs::remove_file(self.log());
    }
}

impl Running {
    /// Process id of the started process.
    pub fn process(&self) -> u32 {
        self.tool.id()
    }

    /// Sends it a signal.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.tool.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.tool.kill();
        let _ = self.tool.wait();
    }
}
