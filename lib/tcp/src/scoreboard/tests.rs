use super::*;

const MSS: u32 = 1000;
const MS: u64 = 1_000_000;

fn board(segments: u32) -> Scoreboard {
    let mut board = Scoreboard::default();
    for index in 0..segments {
        board.push(Seq(index * MSS), MSS, u64::from(index) * MS);
    }
    board
}

fn sack(board: &mut Scoreboard, range: core::ops::Range<u32>, now_ms: u64) -> Progress {
    let mut progress = Progress::default();
    board.sack((Seq(range.start), Seq(range.end)), MSS, Some(5 * MS), now_ms * MS, &mut progress);
    progress
}

#[test]
fn three_segments_beyond_a_gap_tell_of_a_loss_at_once() {
    let mut board = board(10);
    assert_eq!(sack(&mut board, 1000..3000, 20).delivered, 2000);
    let (has_lost, next_ns) = board.find_losses(MSS, 16 * MS, 18 * MS, false, 20 * MS);
    assert!(!has_lost);
    assert_eq!(next_ns, Some((18 + 4) * MS), "the round trip time of the last, and a quarter of the least");
    assert_eq!(sack(&mut board, 1000..4000, 21).delivered, 1000);
    assert_eq!(board.find_losses(MSS, 16 * MS, 18 * MS, false, 21 * MS), (true, None));
    assert_eq!((board.lost, board.pipe(), board.sacked()), (1000, 6000, 3000));
    assert_eq!(board.first_lost().map(|entry| entry.seq), Some(Seq(0)));
    assert_eq!(board.retransmit(Seq(0), MSS, 21 * MS), MSS);
    assert_eq!((board.lost, board.pipe()), (0, 7000));
}

#[test]
fn a_retransmission_that_is_lost_is_found_by_what_was_sent_after_it() {
    let mut board = board(5);
    sack(&mut board, 1000..5000, 20);
    board.find_losses(MSS, 8 * MS, 18 * MS, false, 20 * MS);
    board.retransmit(Seq(0), MSS, 20 * MS);
    board.push(Seq(5000), MSS, 21 * MS);
    sack(&mut board, 5000..6000, 37);
    assert!(board.find_losses(MSS, 8 * MS, 18 * MS, true, 37 * MS).0);
    assert_eq!(board.lost, 1000);
}

#[test]
fn what_comes_late_is_waited_for_once_that_was_seen() {
    let mut board = board(10);
    sack(&mut board, 1000..4000, 20);
    let mut progress = Progress::default();
    board.ack(Seq(4000), Some(8 * MS), 21 * MS, &mut progress);
    assert_eq!(progress.delivered, 1000, "the first was late");
    sack(&mut board, 5000..9000, 28);
    let (has_lost, next_ns) = board.find_losses(MSS, 8 * MS, 18 * MS, false, 24 * MS);
    assert_eq!((has_lost, next_ns), (false, Some((4 + 20 + 2) * MS)));
    board.widen_reorder_window();
    assert_eq!(board.find_losses(MSS, 8 * MS, 18 * MS, false, 24 * MS).1, Some((4 + 20 + 4) * MS));
}

#[test]
fn only_whole_segments_of_what_was_sent_at_once_are_split_off() {
    let mut board = Scoreboard::default();
    board.push(Seq(0), 10 * MSS, 0);
    assert_eq!(sack(&mut board, 1..999, 1).delivered, 0);
    assert_eq!(sack(&mut board, 2500..5500, 1).delivered, 2000);
    assert_eq!(sack(&mut board, 8000..10_000, 1).delivered, 2000);
    assert_eq!((board.sacked(), board.pipe(), board.sent.len()), (4000, 6000, 4));
    let mut progress = Progress::default();
    board.ack(Seq(500), None, MS, &mut progress);
    assert_eq!((progress.delivered, board.pipe()), (500, 5500));
    board.ack(Seq(10_000), None, MS, &mut progress);
    assert!(board.is_empty() && board.pipe() == 0 && board.sacked() == 0 && progress.delivered == 6000);
}

#[test]
fn all_is_lost_and_an_end_that_forgot_is_believed_nothing() {
    let mut board = board(4);
    sack(&mut board, 1000..2000, 20);
    board.lose_all();
    assert_eq!((board.lost, board.pipe(), board.sacked()), (3000, 0, 1000));
    let mut progress = Progress::default();
    board.ack(Seq(1000), None, 30 * MS, &mut progress);
    board.lose_all();
    assert_eq!((board.lost, board.pipe(), board.sacked()), (3000, 0, 0));
}

#[test]
fn without_sack_repeated_acknowledgments_tell() {
    let mut many = board(10);
    assert_eq!([many.note_duplicate(MSS), many.note_duplicate(MSS), many.note_duplicate(MSS)], [false, false, true]);
    assert_eq!(many.pipe(), 7000);
    assert!(many.lose_first(MSS) && !many.lose_first(MSS));
    let mut few = board(2);
    assert!(few.note_duplicate(MSS));
}
