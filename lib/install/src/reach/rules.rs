//! Rules by which an endpoint moves to another holder, each with its permission.

/// A rule by which endpoints move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A program creates channels of contracts that it lists and has both ends (`channel_create`), whichever ends its
    /// manifest declares.
    Create,
    /// A message carries an endpoint of a contract, side and state that its contract names (`channel_send`). The
    /// receiver obtains it whether it lists the contract or not.
    Message,
    /// A message carries an endpoint of any contract, of one side. This includes the contracts of folders and providers
    /// if neither end is the namespace.
    AnyMessage,
    /// A parent gives a child an endpoint that it holds, whether it created the channel or not, for an endpoint of the
    /// child's manifest (`process_give_endpoint`): contract, side and state are compared, its source is not. Two
    /// children can be given the two ends of one channel.
    Start,
    /// The namespace hands an exporting end of any contract to the provider of a path, if a rule lets the program that
    /// has the folder at that moment bind it.
    Bind,
    /// A provider that refuses a client returns an exporting end, and the namespace hands it to the requester without
    /// comparing it with the one that was sent.
    Return,
    /// A provider passes on the end at which the namespace hands it clients: the receiver then gets them.
    Succeed,
    /// A parent gives a child the folder over which it has just sent a request: the request counts as the child's, and
    /// the child gets the reply.
    Underway,
    /// The root binds endpoints of instances in its own name, and gives them ends of channels that it created.
    Root,
}

impl Rule {
    /// All rules.
    pub const ALL: &[Rule] = &[
        Rule::Create,
        Rule::Message,
        Rule::AnyMessage,
        Rule::Start,
        Rule::Bind,
        Rule::Return,
        Rule::Succeed,
        Rule::Underway,
        Rule::Root,
    ];
}
