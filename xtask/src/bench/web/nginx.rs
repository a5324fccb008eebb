//! Linux's side: nginx with one worker and a backend process for dynamic content, a usual setup.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sing::failure::{Failure, Outcome};
use sing::host_tools;
use sing::repository::write_whole;

use super::processes::processor_seconds;
use super::{Part, Server};

/// Startup timeout of both.
const START: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// nginx and its backend, stopped on drop.
pub struct Nginx {
    program: PathBuf,
    configuration: PathBuf,
    folder: PathBuf,
    server: Child,
    behind: Child,
}

impl Nginx {
    /// Starts both on one processor. Returns `None`, after printing why, if the host has no nginx.
    ///
    /// # Errors
    /// They cannot be started.
    pub fn start(folder: &Path, files: &Path, behind: &Path, port: u16, processor: &str) -> Outcome<Option<Nginx>> {
        let Some(program) = host_tools::find("nginx") else {
            eprintln!("sing: nginx is skipped: not installed; run `apt-get install nginx-light`");
            return Ok(None);
        };
        std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
        let socket = folder.join("behind.socket");
        let configuration = folder.join("nginx.conf");
        write_whole(&configuration, configured(folder, files, &socket, ("127.0.0.1", port)).as_bytes())?;
        let on_processor = |what: &Path| {
            let mut command = Command::new("taskset");
            command.args(["-c", processor]).arg(what).stdin(Stdio::null()).stdout(Stdio::null());
            command
        };
        let started =
            |mut command: Command, what: &Path| command.spawn().map_err(|error| Failure::file("start", what, &error));
        let mut answering = on_processor(behind);
        answering.arg("web").arg(&socket).arg(files);
        let behind = started(answering, behind)?;
        let mut serving = on_processor(&program);
        serving.arg("-p").arg(folder).arg("-c").arg(&configuration);
        let server = started(serving, &program)?;
        let mut nginx = Nginx { program, configuration, folder: folder.into(), server, behind };
        nginx.wait(port, &socket)?;
        Ok(Some(nginx))
    }

    /// Waits until both respond.
    fn wait(&mut self, port: u16, socket: &Path) -> Outcome<()> {
        let begun = Instant::now();
        while TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).is_err() || !socket.exists() {
            let has_ended =
                [&mut self.server, &mut self.behind].map(|one| one.try_wait().is_ok_and(|end| end.is_some()));
            if has_ended != [false; 2] || begun.elapsed() > START {
                let log = std::fs::read_to_string(self.folder.join("error.log")).unwrap_or_default();
                return Err(Failure::new("nginx does not serve").details(log));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Server for Nginx {
    fn processor_seconds(&self) -> f64 {
        processor_seconds(self.server.id()) + processor_seconds(self.behind.id())
    }

    fn parts(&self) -> Vec<Part> {
        let part = |name: &str, process: &Child| Part { name: name.into(), used: processor_seconds(process.id()) };
        vec![part("nginx", &self.server), part("application behind nginx", &self.behind)]
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let mut command = Command::new(&self.program);
        command.arg("-p").arg(&self.folder).arg("-c").arg(&self.configuration).args(["-s", "stop"]);
        // Kill it otherwise; its worker notices.
        if !command.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            let _ = self.server.kill();
        }
        let _ = self.server.wait();
        let _ = self.behind.kill();
        let _ = self.behind.wait();
    }
}

/// nginx's configuration: Debian's, with an open-file cache and persistent connections to the backend.
pub fn configured(folder: &Path, files: &Path, socket: &Path, (address, port): (&str, u16)) -> String {
    let (folder, files, socket) = (folder.display(), files.display(), socket.display());
    format!(
        "daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
         user root;\nevents {{ worker_connections 4096; }}\n\
         http {{\n\
         access_log {folder}/access.log combined buffer=64k flush=1s;\n\
         client_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\nfastcgi_temp_path {folder}/fastcgi;\n\
         uwsgi_temp_path {folder}/uwsgi;\nscgi_temp_path {folder}/scgi;\n\
         sendfile on;\ntcp_nopush on;\nkeepalive_timeout 65;\nkeepalive_requests 1000000000;\n\
         open_file_cache max=10000;\nopen_file_cache_valid 1s;\n\
         upstream behind {{ server unix:{socket}; keepalive 64; keepalive_requests 1000000000; }}\n\
         server {{\nlisten {address}:{port} backlog=1024;\nroot {files};\n\
         location /spec/ {{ proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
         proxy_set_header X-Real-IP $remote_addr; }}\n\
         }}\n}}\n"
    )
}
