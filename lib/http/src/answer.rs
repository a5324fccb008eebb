//! Serializes the head of a response, straight into the block that is sent.

/// Writes into bytes, and stops at their end.
#[derive(Debug)]
pub struct HeadWriter<'a> {
    bytes: &'a mut [u8],
    used: usize,
    overflowed: bool,
}

impl<'a> HeadWriter<'a> {
    /// Begins at the start of `bytes`.
    pub fn new(bytes: &'a mut [u8]) -> HeadWriter<'a> {
        HeadWriter { bytes, used: 0, overflowed: false }
    }

    /// Appends bytes unchanged.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        match self.bytes.get_mut(self.used..end) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.used = end;
            }
            None => self.overflowed = true,
        }
    }

    /// Appends a number in decimal.
    pub fn put_number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let start = write_digits(&mut digits, number, 10);
        self.put(&digits[start..]);
    }

    /// Appends a number in hexadecimal.
    pub fn put_hex(&mut self, number: u64) {
        let mut digits = [0; 20];
        let start = write_digits(&mut digits, number, 16);
        self.put(&digits[start..]);
    }

    /// Appends the status line.
    pub fn status(&mut self, status: u16) {
        match status {
            200 => self.put(b"HTTP/1.1 200 OK\r\n"),
            _ => {
                self.put(b"HTTP/1.1 ");
                self.put_number(status.into());
                self.put(b" ");
                self.put(reason(status).as_bytes());
                self.put(b"\r\n");
            }
        }
    }

    /// Appends a field whose name and value are known to be well-formed.
    pub fn field(&mut self, name: &str, value: &[u8]) {
        self.put(name.as_bytes());
        self.put(b": ");
        self.put(value);
        self.put(b"\r\n");
    }

    /// Appends a field whose value is a number.
    pub fn number_field(&mut self, name: &str, value: u64) {
        self.put(name.as_bytes());
        self.put(b": ");
        self.put_number(value);
        self.put(b"\r\n");
    }

    /// Returns the number of bytes written; `None` if there was no room for all.
    pub fn finish(self) -> Option<usize> {
        (!self.overflowed).then_some(self.used)
    }
}

/// Writes digits at the end of `into`; returns where they start.
fn write_digits(into: &mut [u8; 20], mut number: u64, base: u64) -> usize {
    let mut at = into.len();
    loop {
        at -= 1;
        into[at] = b"0123456789abcdef"[(number % base) as usize];
        number /= base;
        if number == 0 {
            return at;
        }
    }
}

/// Returns the reason phrase of a status (RFC 9110, section 15).
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a teapot",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "Other",
    }
}

/// Returns whether a response with this status has content (RFC 9112, section 6.3).
pub fn has_content(status: u16) -> bool {
    !matches!(status, 100..=199 | 204 | 304)
}
