//! What scripts answer: a word, and after it what the word promises.

use redis::Value;
use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{frame::PeerState, id::Slot},
};

/// An answer, taken from its beginning.
pub(super) struct Reply(std::vec::IntoIter<Value>);

impl Reply {
    pub(super) fn new(values: Vec<Value>) -> Self {
        Self(values.into_iter())
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        match self.0.next() {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            _ => Err(strange()),
        }
    }

    pub(super) fn word(&mut self) -> Result<String, StoreError> {
        String::from_utf8(self.bytes()?).map_err(|_| strange())
    }

    pub(super) fn signed(&mut self) -> Result<i64, StoreError> {
        match self.0.next() {
            Some(Value::Int(number)) => Ok(number),
            _ => Err(strange()),
        }
    }

    pub(super) fn number<T: TryFrom<i64>>(&mut self) -> Result<T, StoreError> {
        self.signed()?.try_into().map_err(|_| strange())
    }

    pub(super) fn flag(&mut self) -> Result<bool, StoreError> {
        Ok(self.signed()? != 0)
    }

    /// An instance; `None` where there is none.
    pub(super) fn instance(&mut self) -> Result<Option<InstanceId>, StoreError> {
        match self.word()?.as_str() {
            "" => Ok(None),
            text => InstanceId::parse(text).map(Some).ok_or_else(strange),
        }
    }

    /// A slot; `None` = both.
    pub(super) fn slot(&mut self) -> Result<Option<Slot>, StoreError> {
        match self.word()?.as_str() {
            "" => Ok(None),
            text => slot(text).map(Some).ok_or_else(strange),
        }
    }

    pub(super) fn state(&mut self) -> Result<PeerState, StoreError> {
        match self.word()?.as_str() {
            "absent" => Ok(PeerState::Absent),
            "online" => Ok(PeerState::Online),
            "away" => Ok(PeerState::Away),
            "left" => Ok(PeerState::Left),
            _ => Err(strange()),
        }
    }

    pub(super) fn rest(self) -> impl Iterator<Item = Value> {
        self.0
    }
}

pub(super) fn slot(text: &str) -> Option<Slot> {
    Slot::BOTH.into_iter().find(|slot| slot.as_str() == text)
}

/// Another version of the relay, or somebody else, wrote there.
pub(super) fn strange() -> StoreError {
    StoreError("redis: an answer of an unknown form".to_owned())
}
