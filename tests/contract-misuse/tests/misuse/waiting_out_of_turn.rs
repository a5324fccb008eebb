//! A client puts an endpoint into a wait set on which it is to speak.

use contract_misuse::store;
use sip::select::WaitSet;

fn client(_set: WaitSet<store::Imp<store::states::Ready>>) {}

fn main() {}
