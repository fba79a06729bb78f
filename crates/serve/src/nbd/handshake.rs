//! From the greeting to the choice of an export.

use super::session::Closed;
use super::wire::{self, LONGEST_OPTION, MOST_BYTES, MOST_SKIPPED, OPTION_BYTES, Put, Reader};

/// The context of block status that the protocol itself defines.
const ALLOCATION: &[u8] = b"base:allocation";
pub const ALLOCATION_ID: u32 = 1;

/// What is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What clients may ask for by name; without a name they get it too.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes that requests begin and end at multiples of.
    pub block_bytes: u32,
    /// Those that it likes them to.
    pub preferred_bytes: u32,
    /// Whether writes are refused.
    pub is_read_only: bool,
}

impl Export {
    /// What it can do for a client with which this has been agreed on.
    fn flags(&self, agreed: Agreed) -> u16 {
        use wire::transmission::*;
        let read = HAS_FLAGS | SEND_FLUSH | CAN_MULTI_CONN;
        let write = SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES;
        // Only structured replies could come in fragments.
        let whole = if agreed.is_structured { SEND_DF } else { 0 };
        read | whole | if self.is_read_only { READ_ONLY } else { write }
    }

    fn is_named(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }
}

/// How far the two have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client's flags come next.
    Flags,
    /// An option does.
    Options,
    /// So many bytes do that are passed over.
    Skipping(u32),
}

/// What has been agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Whether reads are answered with structured replies.
    pub is_structured: bool,
    /// Whether block status may be asked for.
    pub has_contexts: bool,
}

/// The negotiation.
#[derive(Clone, Debug)]
pub struct Handshake {
    stage: Stage,
    agreed: Agreed,
    no_zeroes: bool,
}

/// What comes of some bytes.
pub enum Step {
    /// More are needed first.
    Wait,
    /// So many were taken.
    Took(usize),
    /// So many were taken, and the export is chosen.
    Begin(usize, Agreed),
}

impl Handshake {
    /// With the greeting on its way.
    pub fn new(output: &mut Vec<u8>) -> Handshake {
        output.put(wire::GREETING);
        output.u16((wire::handshake::FIXED_NEWSTYLE | wire::handshake::NO_ZEROES) as u16);
        Handshake { stage: Stage::Flags, agreed: Agreed::default(), no_zeroes: false }
    }

    /// Takes what has come.
    pub fn take(&mut self, export: &Export, input: &[u8], output: &mut Vec<u8>) -> Result<Step, Closed> {
        let mut reader = Reader(input);
        match self.stage {
            Stage::Flags => {
                let Some(flags) = reader.u32() else { return Ok(Step::Wait) };
                let known = wire::handshake::FIXED_NEWSTYLE | wire::handshake::NO_ZEROES;
                if flags & !known != 0 || flags & wire::handshake::FIXED_NEWSTYLE == 0 {
                    return Err(Closed::Fault("flags that this server does not know"));
                }
                self.no_zeroes = flags & wire::handshake::NO_ZEROES != 0;
                self.stage = Stage::Options;
                Ok(Step::Took(4))
            }
            Stage::Skipping(left) => {
                let taken = left.min(input.len() as u32);
                self.stage = if taken == left { Stage::Options } else { Stage::Skipping(left - taken) };
                Ok(if taken == 0 && left > 0 { Step::Wait } else { Step::Took(taken as usize) })
            }
            Stage::Options => {
                let (Some(magic), Some(option), Some(length)) = (reader.u64(), reader.u32(), reader.u32())
                else {
                    return Ok(Step::Wait);
                };
                if magic != wire::OPTION {
                    return Err(Closed::Fault("no option where one has to be"));
                }
                if length as usize > LONGEST_OPTION {
                    if length > MOST_SKIPPED || option == wire::option::EXPORT_NAME {
                        return Err(Closed::Fault("an option too long"));
                    }
                    if option == wire::option::SET_META_CONTEXT {
                        self.agreed.has_contexts = false;
                    }
                    answer(output, option, wire::reply::TOO_BIG, b"too long");
                    self.stage = Stage::Skipping(length);
                    return Ok(Step::Took(OPTION_BYTES));
                }
                let Some(data) = reader.bytes(length as usize) else { return Ok(Step::Wait) };
                let taken = OPTION_BYTES + data.len();
                let is_chosen = self.option(export, option, data, output)?;
                Ok(if is_chosen { Step::Begin(taken, self.agreed) } else { Step::Took(taken) })
            }
        }
    }

    /// Answers an option; whether the export is chosen with it.
    fn option(
        &mut self,
        export: &Export,
        option: u32,
        data: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<bool, Closed> {
        match option {
            wire::option::EXPORT_NAME => {
                // There is no way to say no but to hang up.
                if !export.is_named(data) {
                    return Err(Closed::Fault("an export that there is not"));
                }
                output.u64(export.bytes);
                output.u16(export.flags(self.agreed));
                if !self.no_zeroes {
                    output.put(&[0; 124]);
                }
                return Ok(true);
            }
            wire::option::ABORT => {
                answer(output, option, wire::reply::ACK, b"");
                return Err(Closed::Done);
            }
            wire::option::LIST if data.is_empty() => {
                let mut found = Vec::new();
                found.u32(export.name.len() as u32);
                found.put(export.name.as_bytes());
                found.put(export.description.as_bytes());
                answer(output, option, wire::reply::SERVER, &found);
                answer(output, option, wire::reply::ACK, b"");
            }
            wire::option::INFO | wire::option::GO => match asked(data) {
                None => answer(output, option, wire::reply::INVALID, b"not as long as it says"),
                Some((name, _)) if !export.is_named(name) => {
                    answer(output, option, wire::reply::UNKNOWN, b"no such export");
                }
                Some((_, wanted)) => {
                    describe(export, self.agreed, option, &wanted, output);
                    answer(output, option, wire::reply::ACK, b"");
                    return Ok(option == wire::option::GO);
                }
            },
            wire::option::STRUCTURED_REPLY if data.is_empty() => {
                self.agreed.is_structured = true;
                answer(output, option, wire::reply::ACK, b"");
            }
            wire::option::LIST_META_CONTEXT | wire::option::SET_META_CONTEXT => {
                self.contexts(export, option, data, output);
            }
            wire::option::LIST | wire::option::STRUCTURED_REPLY => {
                answer(output, option, wire::reply::INVALID, b"it has no data");
            }
            _ => answer(output, option, wire::reply::UNSUPPORTED, b""),
        }
        Ok(false)
    }

    fn contexts(&mut self, export: &Export, option: u32, data: &[u8], output: &mut Vec<u8>) {
        let is_list = option == wire::option::LIST_META_CONTEXT;
        if !is_list {
            self.agreed.has_contexts = false;
        }
        if !self.agreed.is_structured {
            return answer(output, option, wire::reply::INVALID, b"structured replies come first");
        }
        let Some((name, queries)) = queried(data) else {
            return answer(output, option, wire::reply::INVALID, b"not as long as it says");
        };
        if !export.is_named(name) {
            return answer(output, option, wire::reply::UNKNOWN, b"no such export");
        }
        let is_all = |query: &&[u8]| is_list && *query == b"base:";
        let is_asked = queries.iter().any(|query| *query == ALLOCATION || is_all(query));
        if is_asked || is_list && queries.is_empty() {
            let mut found = Vec::new();
            found.u32(if is_list { 0 } else { ALLOCATION_ID });
            found.put(ALLOCATION);
            answer(output, option, wire::reply::META_CONTEXT, &found);
            self.agreed.has_contexts |= !is_list;
        }
        answer(output, option, wire::reply::ACK, b"");
    }
}

/// Appends an answer to an option.
fn answer(output: &mut Vec<u8>, option: u32, reply: u32, data: &[u8]) {
    output.u64(wire::OPTION_REPLY);
    output.u32(option);
    output.u32(reply);
    output.u32(data.len() as u32);
    output.put(data);
}

/// Tells of the export what is always told, and what else is wanted.
fn describe(export: &Export, agreed: Agreed, option: u32, wanted: &[u16], output: &mut Vec<u8>) {
    let mut tell = |what: u16, say: &dyn Fn(&mut Vec<u8>)| {
        let mut data = Vec::new();
        data.u16(what);
        say(&mut data);
        answer(output, option, wire::reply::INFO, &data);
    };
    tell(wire::info::EXPORT, &|data| {
        data.u64(export.bytes);
        data.u16(export.flags(agreed));
    });
    tell(wire::info::BLOCK_SIZE, &|data| {
        for bytes in [export.block_bytes, export.preferred_bytes, MOST_BYTES] {
            data.u32(bytes);
        }
    });
    if wanted.contains(&wire::info::NAME) {
        tell(wire::info::NAME, &|data| data.put(export.name.as_bytes()));
    }
    if wanted.contains(&wire::info::DESCRIPTION) {
        tell(wire::info::DESCRIPTION, &|data| data.put(export.description.as_bytes()));
    }
}

/// The name and what is wanted to know, of `INFO` and `GO`.
fn asked(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let mut reader = Reader(data);
    let name = reader.string()?;
    let count = reader.u16()?;
    let wanted = (0..count).map(|_| reader.u16()).collect::<Option<_>>()?;
    reader.0.is_empty().then_some((name, wanted))
}

/// The name and the queries of an option about contexts.
fn queried(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut reader = Reader(data);
    let name = reader.string()?;
    let count = reader.u32()?;
    // Each is a length at least.
    if count as usize > data.len() / 4 {
        return None;
    }
    let queries = (0..count).map(|_| reader.string()).collect::<Option<_>>()?;
    reader.0.is_empty().then_some((name, queries))
}
