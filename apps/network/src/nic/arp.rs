//! ARP requests and replies (RFC 826) for IPv4 over Ethernet.
//!
//! Deliberately not here: sending.

/// A MAC address.
pub type Mac = [u8; 6];
/// An IPv4 address.
pub type Ipv4 = [u8; 4];

/// Length of an ARP packet in bytes, without padding.
pub const FRAME_BYTES: usize = 42;

/// Field offsets in a frame.
mod field {
    use core::ops::Range;

    pub const DESTINATION: Range<usize> = 0..6;
    pub const SOURCE: Range<usize> = 6..12;
    /// EtherType, hardware type, protocol type and address lengths.
    pub const KIND: Range<usize> = 12..20;
    pub const OPERATION: Range<usize> = 20..22;
    pub const SENDER_MAC: Range<usize> = 22..28;
    pub const SENDER_IPV4: Range<usize> = 28..32;
    pub const TARGET_IPV4: Range<usize> = 38..42;
}

/// ARP (0x0806), Ethernet (1), IPv4 (0x0800), 6 and 4 bytes.
const KIND: [u8; 8] = [0x08, 0x06, 0, 1, 0x08, 0, 6, 4];
const QUESTION: [u8; 2] = [0, 1];
const ANSWER: [u8; 2] = [0, 2];
const EVERYBODY: Mac = [0xff; 6];

/// Builds a broadcast ARP request.
pub fn question(mac: Mac, own: Ipv4, wanted: Ipv4) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[field::DESTINATION].copy_from_slice(&EVERYBODY);
    frame[field::SOURCE].copy_from_slice(&mac);
    frame[field::KIND].copy_from_slice(&KIND);
    frame[field::OPERATION].copy_from_slice(&QUESTION);
    frame[field::SENDER_MAC].copy_from_slice(&mac);
    frame[field::SENDER_IPV4].copy_from_slice(&own);
    frame[field::TARGET_IPV4].copy_from_slice(&wanted);
    frame
}

/// Returns the MAC address from an ARP reply for this address.
pub fn answer(frame: &[u8], wanted: Ipv4) -> Option<Mac> {
    let is = |field: core::ops::Range<usize>, value: &[u8]| frame.get(field) == Some(value);
    if !is(field::KIND, &KIND) || !is(field::OPERATION, &ANSWER) || !is(field::SENDER_IPV4, &wanted) {
        return None;
    }
    frame.get(field::SENDER_MAC)?.try_into().ok()
}

/// Parses an IPv4 address in dotted-decimal notation.
pub fn parse(text: &str) -> Option<Ipv4> {
    let mut parts = text.split('.');
    let mut address = [0; 4];
    for byte in &mut address {
        *byte = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];

    #[test]
    fn the_answer_to_a_question_tells_who() {
        let question = question(OWN, [10, 0, 2, 15], [10, 0, 2, 2]);
        assert_eq!(answer(&question, [10, 0, 2, 2]), None, "a question is no answer");
        let mut frame = question.to_vec();
        frame[21] = 2;
        frame[22..28].copy_from_slice(&[9; 6]);
        frame[28..32].copy_from_slice(&[10, 0, 2, 2]);
        frame.extend([0; 18]);
        assert_eq!(answer(&frame, [10, 0, 2, 2]), Some([9; 6]));
        assert_eq!(answer(&frame, [10, 0, 2, 3]), None);
        for length in 0..32 {
            assert_eq!(answer(&frame[..length], [10, 0, 2, 2]), None);
        }
    }

    #[test]
    fn addresses_are_four_numbers() {
        assert_eq!(parse("10.0.2.2"), Some([10, 0, 2, 2]));
        for wrong in ["", "10.0.2", "10.0.2.256", "10.0.2.2.1", "a.b.c.d", "10..2.2", "-1.0.0.0"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
