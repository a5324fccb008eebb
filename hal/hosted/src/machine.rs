//! The hosted machine as a whole.
//!
//! Key types: [`Configuration`] in, [`Hosted`] out. Each function of [`Machine`] delegates to the module
//! that implements it. Deliberately not here: anything unsafe.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};
use std::thread;

use abi::limits::STACK_RESERVE_BYTES;
use hal_api::{
    Device, DeviceFailure, DeviceKind, DeviceRequest, DomainAccess, DomainContext, DomainExit, DomainId, DomainRing,
    Hardware, InterruptMessage, KernelEntries, Layout, Machine, MapError, Range, RangeKind, Segment, Submitted, Width,
};

use crate::arena::Reservation;
use crate::clock::{self, Clock};
use crate::confinement::{self, Confinement};
use crate::console::Console;
use crate::disk::{Disk, DiskAccess, DiskSpecification};
use crate::domains::{Domains, MAX_DOMAINS};
use crate::folder::{Folder, FolderNeeds, FolderSpecification};
use crate::image::Images;
use crate::processor::{MAX_PROCESSORS, Processors};
use crate::recording::Recording;
use crate::simulated::{self, Simulated};
use crate::sockets::Sockets;
use crate::tap::{Tap, TapSpecification};
use crate::transfer::Memory;
use crate::{
    StartError, debug_output, host, host_text, output, power_button, random, service, signal, socket_calls, terminal,
};

/// The console is always the first device.
const CONSOLE: usize = 0;

/// Configuration of the machine.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// Number of processors; `None`: that of the host.
    pub processors: Option<usize>,
    /// The disks, in order: `disk0`, `disk1`, ...
    pub disks: Vec<DiskSpecification>,
    /// The folders of the host, in order: `folder0`, `folder1`, ...
    pub folders: Vec<FolderSpecification>,
    /// The TAP interface offered as `tap0`.
    pub tap: Option<TapSpecification>,
    /// Memory for SIPs in bytes, a multiple of a page; `None`: as much as the host allows.
    pub memory_bytes: Option<usize>,
    /// File of a recording of the run, if it is to be recorded.
    pub recording: Option<Arc<File>>,
    /// Address space of the recorded machine, for a replay.
    pub replayed: Option<Layout>,
    /// Whether there are hardware domains.
    pub domains: bool,
    /// Whether there is a bus with devices for tests of drivers.
    pub simulated_device: bool,
    /// Whether the process is confined once its processors run.
    pub confinement: Confinement,
    /// Fails one of this many requests to the sockets device, for tests; `None`: none.
    pub socket_fault_every: Option<u32>,
}

/// A machine, with notices about its configuration.
#[derive(Debug)]
pub struct Started {
    /// The machine. It is leaked, so it lives as long as the process.
    pub machine: &'static Hosted,
    /// One sentence for each deviation from the configuration.
    pub notices: Vec<String>,
}

/// The machine that is one Linux process.
#[derive(Debug)]
pub struct Hosted {
    clock: Clock,
    reservation: Reservation,
    images: Images,
    domains: Option<Domains>,
    processors: &'static Processors,
    console: Arc<Console>,
    disks: Vec<Disk>,
    folders: Vec<Folder>,
    sockets: Arc<Sockets>,
    tap: Option<Arc<Tap>>,
    simulated: OnceLock<&'static Simulated>,
    confinement: Confinement,
    recording: Option<Recording>,
    /// The running executable, even if its path now names another file.
    program: Option<File>,
}

impl Hosted {
    /// Opens disks, folders and TAP interface, and reserves the address space.
    pub fn start(configuration: &Configuration) -> Result<Started, StartError> {
        let clock = Clock::start();
        let processors = processor_count(configuration.processors)?;
        // A confined process may not.
        socket_calls::raise_file_limit();
        let mut notices = Vec::new();
        let mut disks = Vec::new();
        for (number, specification) in configuration.disks.iter().enumerate() {
            let disk = Disk::open(specification)?;
            if disk.read_only() && specification.access == DiskAccess::WriteIfAllowed {
                let path = specification.path.display();
                notices.push(format!("disk{number}: {path} may not be written by this user; it is opened read-only"));
            }
            disks.push(disk);
        }
        let folders = configuration.folders.iter().map(Folder::open).collect::<Result<_, _>>()?;
        let mut tap = None;
        if let Some(specification) = &configuration.tap {
            let (device, notice) = Tap::open(specification)?;
            notices.extend(notice);
            tap = Some(device);
        }
        let (reservation, domains) = if configuration.domains {
            let (reservation, files) = Reservation::new_shared(configuration.memory_bytes)?;
            let domains = Domains::start(reservation.layout(), files).map_err(StartError::Domains)?;
            (reservation, Some(domains))
        } else {
            let memory_bytes = configuration.memory_bytes;
            let reservation = match (configuration.replayed, &configuration.recording) {
                (Some(layout), _) => Reservation::at(layout),
                (None, Some(_)) => Reservation::for_recording(memory_bytes),
                (None, None) => Reservation::new(memory_bytes),
            };
            (reservation?, None)
        };
        let recording = match &configuration.recording {
            Some(file) => Some(file.try_clone().and_then(Recording::start).map_err(StartError::Recording)?),
            None => None,
        };
        host_text::record();
        output::standard_error();
        output::standard_output();
        let machine = Box::leak(Box::new(Self {
            clock,
            images: Images::new(reservation.layout().images),
            domains,
            reservation,
            processors: Box::leak(Box::new(Processors::new(processors, clock))),
            console: Arc::default(),
            disks,
            folders,
            sockets: Sockets::new(configuration.socket_fault_every),
            tap,
            simulated: OnceLock::new(),
            confinement: configuration.confinement,
            recording,
            program: File::open("/proc/self/exe").ok(),
        }));
        if configuration.simulated_device {
            machine.simulated.get_or_init(Simulated::start);
        }
        power_button::connect(machine.simulated_lines(), || machine.processors.interrupt_and_wake_all());
        Ok(Started { machine, notices })
    }

    /// Returns the number of the simulated bus's interrupt lines; the power button's follows them.
    fn simulated_lines(&self) -> u32 {
        self.simulated.get().map_or(0, |_| Simulated::lines())
    }

    /// Returns the index of the first folder: console and disks come before.
    fn first_folder(&self) -> usize {
        CONSOLE + 1 + self.disks.len()
    }

    /// Returns the index of the device after the folders: the sockets, then the random bytes, then the TAP interface.
    fn first_after_folders(&self) -> usize {
        self.first_folder() + self.folders.len()
    }

    fn folder_needs(&self) -> Vec<FolderNeeds<'_>> {
        self.folders.iter().map(Folder::needs).collect()
    }

    /// Returns the folder with this device index.
    fn folder(&self, device: usize) -> Option<&Folder> {
        device.checked_sub(self.first_folder()).and_then(|number| self.folders.get(number))
    }
}

/// Reads a whole file with read calls only: a confined process may not ask for its size.
fn read_whole(file: &File) -> io::Result<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
    loop {
        match file.read_at(&mut buffer, bytes.len() as u64)? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn processor_count(asked: Option<usize>) -> Result<usize, StartError> {
    match asked {
        Some(count) if (1..=MAX_PROCESSORS).contains(&count) => Ok(count),
        Some(asked) => Err(StartError::Processors { asked, most: MAX_PROCESSORS }),
        None => Ok(thread::available_parallelism().map_or(1, |count| count.get().min(MAX_PROCESSORS))),
    }
}

impl Machine for Hosted {
    fn processor_count(&self) -> usize {
        self.processors.count()
    }

    fn layout(&self) -> Layout {
        self.reservation.layout()
    }

    fn run_processors(&self, bases: &[usize], main: extern "C" fn(processor: usize), entries: KernelEntries) {
        signal::install();
        // Landlock applies to threads that are started from now on.
        if self.confinement == Confinement::Confined {
            for notice in confinement::confine(self.reservation.layout().images, &self.folder_needs()) {
                host::say(&notice);
            }
        }
        host::watch_requests();
        if let Some(simulated) = self.simulated.get() {
            let processors = self.processors;
            simulated.run_later(|| processors.interrupt_and_wake_all());
        }
        self.processors.run(bases, main, entries);
    }

    fn guard(&self, address: usize, bytes: usize) {
        self.reservation.guard(address, bytes);
    }

    fn decommit(&self, address: usize, bytes: usize) {
        self.reservation.decommit(address, bytes);
    }

    fn window_map(&self, address: usize, _memory: usize, bytes: usize) -> Result<(), MapError> {
        self.reservation.window_map(address, bytes)
    }

    fn window_release(&self, address: usize, bytes: usize) {
        self.reservation.window_release(address, bytes);
    }

    fn window_clear(&self, address: usize, bytes: usize) -> bool {
        self.reservation.window_clear(address, bytes)
    }

    /// An exact answer costs a system call per stack; host memory is not the scarce resource, so a typical depth will do.
    fn stack_in_use(&self, _address: usize, bytes: usize) -> usize {
        bytes.min(STACK_RESERVE_BYTES)
    }

    fn map_image(&self, segments: &[Segment<'_>]) -> Result<(), MapError> {
        self.images.map(segments)
    }

    fn idle(&self, processor: usize, deadline_ns: u64) {
        self.sockets.processor_idles();
        self.processors.idle(processor, deadline_ns);
    }

    fn wake(&self, processor: usize) {
        self.processors.wake(processor);
    }

    fn interrupt(&self, processor: usize) {
        self.processors.interrupt(processor);
    }

    fn relax(&self, spins: u32) {
        Processors::relax(spins);
    }

    fn monotonic_ns(&self) -> u64 {
        self.clock.elapsed_ns()
    }

    fn processor_ns(&self) -> u64 {
        clock::processor_ns()
    }

    fn wall_ns(&self) -> u64 {
        clock::wall_ns()
    }

    fn devices(&self) -> Vec<Device> {
        let console = DeviceKind::Console { terminal: terminal::is_interactive() };
        let mut devices = vec![Device { name: "console".into(), kind: console }];
        devices.extend(self.disks.iter().enumerate().map(|(number, disk)| Device {
            name: format!("disk{number}"),
            kind: DeviceKind::Disk { bytes: disk.bytes(), read_only: disk.read_only() },
        }));
        devices.extend(
            self.folders
                .iter()
                .enumerate()
                .map(|(number, folder)| Device { name: format!("folder{number}"), kind: folder.kind() }),
        );
        devices.push(Device { name: "sockets0".into(), kind: DeviceKind::Sockets });
        devices.push(Device { name: "random0".into(), kind: DeviceKind::Random });
        devices.extend(self.tap.iter().map(|tap| Device { name: "tap0".into(), kind: tap.kind() }));
        devices
    }

    fn console_size(&self, _device: usize) -> (u16, u16) {
        terminal::size()
    }

    fn hardware(&self) -> Vec<Hardware> {
        let simulated = self.simulated.get().map(|_| Simulated::hardware());
        simulated.into_iter().chain(power_button::hardware()).chain([service::hardware()]).collect()
    }

    fn may_claim(&self, range: Range) -> bool {
        service::may_claim(range) || self.simulated.get().is_some() && Simulated::may_claim(range)
    }

    fn interrupt_lines(&self) -> u32 {
        self.simulated_lines() + 1
    }

    fn register_read(&self, kind: RangeKind, address: u64, width: Width) -> u64 {
        self.simulated.get().map_or(0, |simulated| simulated.read(kind, address, width))
    }

    fn register_write(&self, kind: RangeKind, address: u64, width: Width, value: u64) {
        if service::write(kind, address) {
            return;
        }
        if let Some(simulated) = self.simulated.get() {
            simulated.write(&self.reservation, kind, address, width, value);
        }
    }

    fn interrupt_mask(&self, line: u32, masked: bool) {
        if power_button::mask(line, masked) {
            return;
        }
        if let Some(simulated) = self.simulated.get() {
            simulated.mask(line, masked);
        }
    }

    fn interrupt_message(&self) -> Option<InterruptMessage> {
        self.simulated.get()?.message()
    }

    fn device_address(&self, address: usize, _bytes: usize) -> Option<u64> {
        self.simulated.get()?;
        simulated::device_address(&self.reservation, address)
    }

    fn device_submit(&self, request: DeviceRequest) -> Submitted {
        let refused = Submitted::Complete(Err(DeviceFailure));
        let Some(memory) = Memory::checked(&self.reservation, request.address, request.bytes) else {
            return refused;
        };
        if request.device == CONSOLE {
            return self.console.submit(request.token, request.operation, memory);
        }
        let DeviceRequest { token, operation, offset, .. } = request;
        if let Some(disk) = self.disks.get(request.device - 1) {
            return disk.submit(token, operation, offset, memory);
        }
        if let Some(folder) = self.folder(request.device) {
            return folder.submit(token, operation, memory);
        }
        match (request.device - self.first_after_folders(), &self.tap) {
            (0, _) => self.sockets.submit(token, operation, offset, memory),
            (1, _) => random::submit(operation, memory),
            (2, Some(tap)) => tap.submit(token, operation, offset, memory),
            _ => refused,
        }
    }

    fn device_closed(&self, device: usize) {
        if let Some(folder) = self.folder(device) {
            folder.close();
        }
        match (device.checked_sub(self.first_after_folders()), &self.tap) {
            (Some(0), _) => self.sockets.close(),
            (Some(2), Some(tap)) => tap.close(),
            _ => {}
        }
    }

    fn debug_write(&self, text: &[u8]) {
        debug_output::write(text);
    }

    fn takes_recording(&self) -> bool {
        self.recording.is_some()
    }

    fn record(&self, bytes: &[u8]) {
        self.recording.iter().for_each(|recording| recording.append(bytes));
    }

    fn record_end(&self) {
        self.recording.iter().for_each(Recording::flush);
    }

    fn power_off(&self, exit_status: u8) -> ! {
        host::system_ended();
        self.console.drain(host::output_limit());
        host::end_process(exit_status)
    }

    fn kernel_image(&self) -> Vec<Cow<'static, [u8]>> {
        self.program.iter().filter_map(|program| read_whole(program).ok()).map(Cow::Owned).collect()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let in_force = confinement::in_force();
        let mut counters = vec![
            ("memory bytes", self.reservation.layout().memory.bytes as u64),
            ("host calls allowed", in_force.system_calls.unwrap_or(0)),
            ("host Landlock version", in_force.landlock),
        ];
        counters.extend(self.domains.iter().map(|domains| ("hardware domains", domains.count() as u64)));
        counters
    }

    fn max_domains(&self) -> u32 {
        self.domains.as_ref().map_or(0, |_| MAX_DOMAINS as u32)
    }

    fn domain_gate(&self, number: usize) -> usize {
        self.domains.as_ref().map_or(0, |domains| domains.gate(number))
    }

    fn domain_create(&self, ring: DomainRing) -> Option<DomainId> {
        self.domains.as_ref().filter(|_| ring == DomainRing::Ring3)?.create()
    }

    fn domain_close(&self, domain: DomainId) {
        self.domains.iter().for_each(|domains| domains.close(domain));
    }

    fn domain_destroy(&self, domain: DomainId) {
        self.domains.iter().for_each(|domains| domains.destroy(domain));
    }

    fn domain_map(&self, domain: DomainId, address: usize, bytes: usize, access: DomainAccess) -> Result<(), MapError> {
        self.domains.as_ref().ok_or(MapError)?.map(&self.images, domain, address, bytes, access)
    }

    fn domain_map_private(
        &self,
        domain: DomainId,
        address: usize,
        memory: usize,
        bytes: usize,
    ) -> Result<(), MapError> {
        self.domains.as_ref().ok_or(MapError)?.map_private(domain, address, memory, bytes)
    }

    fn domain_map_stack(&self, domain: DomainId, address: usize) -> Result<(), MapError> {
        self.domains.as_ref().ok_or(MapError)?.map_stack(domain, address)
    }

    fn domain_unmap(&self, domain: DomainId, address: usize, bytes: usize) {
        self.domains.iter().for_each(|domains| domains.unmap(domain, address, bytes));
    }

    fn domain_enter(&self, domain: DomainId, context: &mut DomainContext) -> DomainExit {
        match &self.domains {
            Some(domains) => domains.enter(domain, context),
            None => DomainExit::Interrupt,
        }
    }

    fn restart(&self) -> ! {
        host::system_ended();
        self.console.drain(host::output_limit());
        host::restart_process()
    }
}
