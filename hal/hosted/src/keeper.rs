//! A privileged companion of the confined machine process: restarts it, and answers its queries for host names and
//! interfaces.
//!
//! The *keeper* is the process that was started; the machine is its child, so that exit status, terminal and signals
//! are those of one program. It answers only [`Question`]s, each of bounded size, over sockets that the machine
//! inherits. Neighbours: `host` (signals and endings), `lookups` (the client), `host_network` (the answers),
//! `confinement` (denied operations). Deliberately not here: programs, disks, packets.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use abi::sockets::{Command, Failure};
use host_service::notify::State;

use crate::host_network::Records;
use crate::{host, lookups, service, terminal};

/// Maximum concurrent queries; `lookups` has as many threads.
pub(crate) const CONNECTIONS: usize = 4;
/// Maximum length of a DNS name (RFC 1035).
pub(crate) const NAME_BYTES_MAX: usize = 253;
/// Maximum records in an answer.
const RECORDS_MAX: u64 = 1 << 16;
const RECORD_BYTES_MAX: u64 = 1 << 12;
const THREAD_STACK_BYTES: usize = 256 * 1024;
/// Messages on the state line, one byte each: restart the machine after it has ended; the system is up; the system is
/// about to end.
const START_ANEW: u8 = b'r';
const READY: u8 = b'o';
const STOPPING: u8 = b's';

/// The machine's ends of its connections to the keeper.
struct Lines {
    questions: Mutex<Vec<UnixStream>>,
    state: UnixStream,
    /// The keeper's process id.
    process: libc::pid_t,
}

static LINES: OnceLock<Lines> = OnceLock::new();

/// A query to the keeper.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) command: Command,
    /// The first argument of the command.
    pub(crate) argument: u64,
    /// At most [`NAME_BYTES_MAX`] bytes.
    pub(crate) name: Vec<u8>,
}

/// Makes this process the keeper and returns in its child, the machine. Must be called before there are other threads,
/// with the signals of `requests` blocked.
///
/// # Errors
/// The host could not fork, or create the sockets; there is no child then.
pub(crate) fn start(requests: &libc::sigset_t) -> io::Result<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let (keeper, machine) = UnixStream::pair()?;
        ours.push(keeper);
        theirs.push(machine);
    }
    let (state, of_machine) = UnixStream::pair()?;
    terminal::remember();
    // SAFETY: takes no arguments.
    let keeper = unsafe { libc::getpid() };
    // SAFETY: the process has one thread, so the child's memory is consistent.
    let machine = unsafe { libc::fork() };
    match machine {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            die_with(keeper);
            let lines = Lines { questions: Mutex::new(theirs), state: of_machine, process: keeper };
            assert!(LINES.set(lines).is_ok(), "a machine has one keeper");
            Ok(())
        }
        machine => {
            drop((theirs, of_machine));
            keep(machine, ours, state, requests)
        }
    }
}

/// Returns whether this process is a machine with a keeper.
pub(crate) fn is_there() -> bool {
    LINES.get().is_some()
}

/// Returns the id of the process that the supervisor or the shell started.
pub(crate) fn first_process() -> u32 {
    LINES.get().map_or_else(std::process::id, |lines| lines.process.unsigned_abs())
}

/// Asks the keeper to restart the machine once this process has ended; false if there is none.
pub(crate) fn start_anew() -> bool {
    LINES.get().is_some_and(|lines| (&lines.state).write_all(&[START_ANEW]).is_ok())
}

/// Has the keeper report the state to its supervisor.
pub(crate) fn report_state(state: State) {
    let byte = match state {
        State::Ready => READY,
        // The keeper itself reloads.
        State::Reloading => return,
        State::Stopping => STOPPING,
    };
    if let Some(lines) = LINES.get() {
        // Best-effort: a machine whose keeper is gone is about to end.
        let _ = (&lines.state).write_all(&[byte]);
    }
}

/// Sends a query to the keeper and blocks for the answer.
pub(crate) fn ask(question: &Question) -> Result<Records, Failure> {
    let lines = LINES.get().ok_or(Failure::NotSupported)?;
    let mut free = lines.questions.lock().unwrap_or_else(PoisonError::into_inner);
    let mut line = free.pop().ok_or(Failure::Exhausted)?;
    drop(free);
    let answer = question.write(&mut line).and_then(|()| read_answer(&mut line)).map_err(|_| Failure::Other)?;
    // A connection that failed is not used again.
    lines.questions.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    answer
}

/// Makes this process end with its parent.
pub(crate) fn die_with(parent: libc::pid_t) {
    // SAFETY: neither call touches memory.
    let is_orphan = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid() != parent
    };
    if is_orphan {
        // It ended before the death signal was set.
        host::exit_now(1);
    }
}

/// Runs the keeper: answers queries, forwards signals, and ends as the machine does, or restarts it.
fn keep(machine: libc::pid_t, lines: Vec<UnixStream>, state: UnixStream, requests: &libc::sigset_t) -> ! {
    let mut set = *requests;
    // SAFETY: the set is initialised; a blocked SIGCHLD stays pending for `sigwaitinfo`.
    unsafe {
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
    }
    for mut line in lines {
        let answer = move || while answer_one(&mut line).is_ok() {};
        let thread = thread::Builder::new().name("keeper".into()).stack_size(THREAD_STACK_BYTES).spawn(answer);
        // Without the thread the connection is closed, which the machine gets as an error.
        drop(thread);
    }
    let follow = move || follow(&state);
    let following = thread::Builder::new().name("state".into()).stack_size(THREAD_STACK_BYTES).spawn(follow);
    if let Err(error) = &following {
        host::say(&format!("no thread for what the machine says of its state ({error}); nobody is told of it"));
    }
    let status = loop {
        if let Some(status) = ended(machine) {
            break status;
        }
        // SAFETY: the set is initialised; the null second argument means that no information is written.
        match unsafe { libc::sigwaitinfo(&set, ptr::null_mut()) } {
            libc::SIGCHLD | libc::SIGCONT | ..0 => {}
            signal if signal == libc::SIGHUP && service::reload() => {}
            signal => {
                // SAFETY: kill touches no memory; the machine has not been waited for, so its id is not reused.
                let _ = unsafe { libc::kill(machine, signal) };
                service::tell(State::Stopping);
            }
        }
    };
    if libc::WIFSIGNALED(status) {
        end_like(libc::WTERMSIG(status));
    }
    // The state line is closed when the machine ends.
    let wants_restart = following.is_ok_and(|thread| thread.join().is_ok_and(|end| end == End::StartAnew));
    if wants_restart {
        host::execute_anew();
    }
    host::exit_now(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
}

/// Action after the machine has ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// End as well.
    Final,
    /// Restart it.
    StartAnew,
}

/// Reports the machine's state messages to the supervisor, until the machine ends.
fn follow(mut line: impl Read) -> End {
    let (mut end, mut byte) = (End::Final, [0]);
    while line.read_exact(&mut byte).is_ok() {
        match byte {
            [START_ANEW] => end = End::StartAnew,
            [READY] => service::tell(State::Ready),
            [STOPPING] => service::tell(State::Stopping),
            _ => {}
        }
    }
    end
}

/// Returns the machine's wait status, if it has ended.
fn ended(machine: libc::pid_t) -> Option<libc::c_int> {
    let mut status = 0;
    // SAFETY: `status` is live over the call.
    let answer = unsafe { libc::waitpid(machine, &mut status, libc::WNOHANG) };
    (answer == machine).then_some(status)
}

/// Ends with the signal that ended the machine, which could not restore the terminal.
fn end_like(signal: libc::c_int) -> ! {
    terminal::restore_remembered();
    host::say_last(&format!("the machine was ended by signal {signal} of the host"));
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is writable memory that sigemptyset initialises before it is used. The signal ends this process,
    // without a second core dump beside the machine's.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
        libc::raise(signal);
    }
    host::exit_now(host::status_of(signal))
}

/// Reads a query and writes its answer.
fn answer_one(line: &mut UnixStream) -> io::Result<()> {
    let question = Question::read(line)?;
    match lookups::answer(&question) {
        Ok(records) => {
            let width = records.first().map_or(0, Vec::len) as u64;
            let mut bytes = [0, records.len() as u64, width].map(u64::to_le_bytes).concat();
            records.iter().for_each(|record| bytes.extend(record));
            line.write_all(&bytes)
        }
        Err(failure) => line.write_all(&[failure as u64, 0, 0].map(u64::to_le_bytes).concat()),
    }
}

fn read_answer(line: &mut impl Read) -> io::Result<Result<Records, Failure>> {
    let [failure, count, width] = read_numbers(line)?;
    if failure != 0 {
        return Ok(Err(Failure::from_number(failure).unwrap_or(Failure::Other)));
    }
    if count > RECORDS_MAX || width > RECORD_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let read_record = |_| {
        let mut record = vec![0; width as usize];
        line.read_exact(&mut record).map(|()| record)
    };
    (0..count).map(read_record).collect::<io::Result<Records>>().map(Ok)
}

impl Question {
    fn write(&self, line: &mut impl Write) -> io::Result<()> {
        let numbers = [self.command as u64, self.argument, self.name.len() as u64].map(u64::to_le_bytes).concat();
        line.write_all(&[numbers, self.name.clone()].concat())
    }

    /// Reads a query from a machine that may be hostile.
    fn read(line: &mut impl Read) -> io::Result<Self> {
        let [command, argument, length] = read_numbers(line)?;
        let command = Command::from_number(command).filter(|&command| lookups::is_lookup(command));
        let (Some(command), true) = (command, length <= NAME_BYTES_MAX as u64) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut name = vec![0; length as usize];
        line.read_exact(&mut name)?;
        Ok(Self { command, argument, name })
    }
}

fn read_numbers(line: &mut impl Read) -> io::Result<[u64; 3]> {
    let mut bytes = [[0; 8]; 3];
    for number in &mut bytes {
        line.read_exact(number)?;
    }
    Ok(bytes.map(u64::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_comes_as_it_was_asked() {
        let question = Question { command: Command::Resolve, argument: 4, name: b"localhost".to_vec() };
        let mut bytes = Vec::new();
        question.write(&mut bytes).expect("memory takes it");
        assert_eq!(Question::read(&mut bytes.as_slice()).expect("a question"), question);
    }

    #[test]
    fn no_other_question_is_answered() {
        let question = |numbers: [u64; 3]| [numbers.map(u64::to_le_bytes).concat(), vec![b'x'; 300]].concat();
        for numbers in [[Command::Connect as u64, 0, 1], [0, 0, 1], [u64::MAX, 0, 1], [Command::Resolve as u64, 0, 254]]
        {
            assert!(Question::read(&mut question(numbers).as_slice()).is_err(), "{numbers:?}");
        }
        assert!(Question::read(&mut question([Command::Resolve as u64, 0, 253]).as_slice()).is_ok());
        assert!(Question::read(&mut &question([Command::Resolve as u64, 0, 253])[..100]).is_err());
    }

    #[test]
    fn a_machine_is_started_anew_only_if_it_says_so() {
        assert_eq!(follow(&[][..]), End::Final);
        assert_eq!(follow(&b"os?"[..]), End::Final);
        assert_eq!(follow(&b"or"[..]), End::StartAnew);
    }

    #[test]
    fn answers_come_back() {
        let (mut asks, mut answers) = UnixStream::pair().expect("a pair of sockets");
        let thread = thread::spawn(move || while answer_one(&mut answers).is_ok() {});
        let mut ask = |name: &[u8], argument| {
            let question = Question { command: Command::Resolve, argument, name: name.to_vec() };
            question.write(&mut asks).expect("it is heard");
            read_answer(&mut asks).expect("an answer")
        };
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1].to_vec();
        assert_eq!(ask(b"127.0.0.1", 4), Ok(vec![mapped]));
        assert_eq!(ask(b"127.0.0.1", 5), Err(Failure::BadCommand));
        drop(asks);
        thread.join().expect("it ends with the line");
    }
}
