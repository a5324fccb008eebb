//! Results of ABI functions.

/// The two result registers of an ABI function: a [`Status`], and a value if that is [`Status::Ok`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbiReturn {
    /// A [`Status`] as a number.
    pub status: u64,
    /// Its meaning depends on the function; see the rendered table.
    pub value: u64,
}

macro_rules! statuses {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal, $text:literal;)*) => {
        /// Why a call failed. The caller can recover; a fault for which it cannot, such as a contract violation, ends
        /// the SIP instead.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        pub enum Status { $($(#[doc = $doc])+ $name = $number,)* }
        impl Status {
            /// The status with this number; [`Status::Unknown`] for an unknown one.
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
    /// Success.
    Ok = 0, "done";
    /// The peer's endpoint is closed, and all its messages have been received.
    Closed = 1, "the channel is closed";
    /// The deadline passed.
    TimedOut = 2, "timed out";
    /// A non-blocking call would block.
    WouldBlock = 3, "nothing is ready";
    /// Not a handle of this SIP's.
    BadHandle = 4, "the handle names nothing this process owns";
    /// An argument is out of range.
    BadArgument = 5, "an argument is outside its range";
    /// Not permitted by the SIP's manifest.
    NotPermitted = 6, "the manifest does not permit it";
    /// A quota of the SIP's manifest is exhausted.
    QuotaExceeded = 7, "a quota of the manifest is used up";
    /// No such name or number.
    NotFound = 8, "not found";
    /// The machine is out of it.
    Exhausted = 9, "the machine has no more of it";
    /// In use.
    Busy = 10, "it is in use";
    /// Not possible in its state.
    WrongState = 11, "it is not in a state in which that can be done";
    /// The block is on loan: it can only be returned or lent on.
    Lent = 12, "the block is lent and can only be returned";
    /// The endpoint is of another contract, side or state.
    ContractMismatch = 13, "the endpoint is not of the contract and state that is wanted";
    /// The device reported an error.
    DeviceError = 14, "the device reported an error";
    /// The text or record is too large.
    TooLarge = 15, "too large";
    /// The caller holds the mutex already, or its owner ended while holding it.
    Deadlock = 16, "the caller holds it already";
    /// The package was rejected; the message buffer holds the reason as text.
    Refused = 17, "the program's package was refused";
    /// A number unknown to this version.
    Unknown = 18, "unknown status";
}

impl AbiReturn {
    /// Success with `value`.
    pub const fn ok(value: u64) -> AbiReturn {
        AbiReturn { status: Status::Ok as u64, value }
    }

    /// Failure.
    pub const fn err(status: Status) -> AbiReturn {
        AbiReturn { status: status as u64, value: 0 }
    }

    /// Converts to a `Result`.
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
