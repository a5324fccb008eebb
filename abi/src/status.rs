//! What an ABI function answers.

/// The two registers in which an ABI function answers: a [`Status`] and, when that is
/// [`Status::Ok`], a value.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbiReturn {
    /// A [`Status`] as a number.
    pub status: u64,
    /// Meaning depends on the function; see the rendered table.
    pub value: u64,
}

macro_rules! statuses {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal, $text:literal;)*) => {
        /// Why an ABI function did not do what was asked. Recoverable by the caller; a caller's
        /// fault that is not (a message outside the contract, say) ends the SIP instead.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        pub enum Status { $($(#[doc = $doc])+ $name = $number,)* }
        impl Status {
            /// The status with this number; an unknown number reads as [`Status::Unknown`].
            pub const fn from_number(number: u64) -> Status {
                match number { $($number => Status::$name,)* _ => Status::Unknown }
            }
            /// A short phrase for people.
            pub const fn text(self) -> &'static str {
                match self { $(Status::$name => $text,)* }
            }
        }
    };
}

statuses! {
    /// Done.
    Ok = 0, "done";
    /// The peer's endpoint is closed and everything it sent has been received.
    Closed = 1, "the channel is closed";
    /// The deadline came first.
    TimedOut = 2, "timed out";
    /// Nothing is ready and the call does not wait.
    WouldBlock = 3, "nothing is ready";
    /// The handle names nothing that this SIP owns.
    BadHandle = 4, "the handle names nothing this process owns";
    /// An argument is outside its range.
    BadArgument = 5, "an argument is outside its range";
    /// The SIP's manifest does not permit it.
    NotPermitted = 6, "the manifest does not permit it";
    /// A quota of the SIP's manifest is used up.
    QuotaExceeded = 7, "a quota of the manifest is used up";
    /// Nothing has that name or number.
    NotFound = 8, "not found";
    /// The machine has no more of it.
    Exhausted = 9, "the machine has no more of it";
    /// It is in use.
    Busy = 10, "it is in use";
    /// It is not in a state in which that can be done.
    WrongState = 11, "it is not in a state in which that can be done";
    /// The block is lent: it can only be returned or lent on.
    Lent = 12, "the block is lent and can only be returned";
    /// The endpoint is not of the contract, side or state that is wanted.
    ContractMismatch = 13, "the endpoint is not of the contract and state that is wanted";
    /// The device could not do it.
    DeviceError = 14, "the device reported an error";
    /// The text or record does not fit.
    TooLarge = 15, "too large";
    /// The mutex's owner ended while it held it, or the lock is taken by the caller already.
    Deadlock = 16, "the caller holds it already";
    /// The program's package was refused; the message buffer holds the reason as text.
    Refused = 17, "the program's package was refused";
    /// A number that this version does not know.
    Unknown = 18, "unknown status";
}

impl AbiReturn {
    /// An answer of [`Status::Ok`] with `value`.
    pub const fn ok(value: u64) -> AbiReturn {
        AbiReturn { status: Status::Ok as u64, value }
    }

    /// The answer of a failed call.
    pub const fn err(status: Status) -> AbiReturn {
        AbiReturn { status: status as u64, value: 0 }
    }

    /// The answer as a `Result`.
    pub const fn into_result(self) -> Result<u64, Status> {
        match Status::from_number(self.status) {
            Status::Ok => Ok(self.value),
            other => Err(other),
        }
    }
}

impl From<Result<u64, Status>> for AbiReturn {
    fn from(result: Result<u64, Status>) -> AbiReturn {
        match result {
            Ok(value) => AbiReturn::ok(value),
            Err(status) => AbiReturn::err(status),
        }
    }
}
