//! As much of a TURN client (RFC 8656, RFC 8489) as it takes to ask for an allocation and for a permission.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;
use tokio::{net::UdpSocket, time::timeout};

use super::DEADLINE;

const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
/// Datagrams get lost, and a server that is just starting hears none: asked again after so long (RFC 8489, 6.2.1).
const AGAIN: Duration = Duration::from_millis(500);

const ALLOCATE: u16 = 0x0003;
const CREATE_PERMISSION: u16 = 0x0008;
const SUCCESS: u16 = 0x0100;

const USERNAME: u16 = 0x0006;
const MESSAGE_INTEGRITY: u16 = 0x0008;
const ERROR_CODE: u16 = 0x0009;
const XOR_PEER_ADDRESS: u16 = 0x0012;
const REALM: u16 = 0x0014;
const NONCE: u16 = 0x0015;
const REQUESTED_TRANSPORT: u16 = 0x0019;
const UDP: [u8; 4] = [17, 0, 0, 0];

/// A client of one TURN server.
pub struct TurnClient {
    socket: UdpSocket,
    username: String,
    credential: String,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    asked: u64,
}

/// What a server answered: fine, or an error code.
pub type Outcome = Result<(), u16>;

struct Answer {
    kind: u16,
    attributes: Vec<(u16, Vec<u8>)>,
}

/// A client with a socket of its own.
pub async fn connect(server: SocketAddrV4, username: &str, credential: &str) -> TurnClient {
    let socket = UdpSocket::bind((*server.ip(), 0)).await.unwrap();
    socket.connect(server).await.unwrap();
    TurnClient {
        socket,
        username: username.to_owned(),
        credential: credential.to_owned(),
        realm: Vec::new(),
        nonce: Vec::new(),
        asked: 0,
    }
}

impl TurnClient {
    /// Asks for an allocation: without credentials first, which tells realm and nonce (RFC 8489, 9.2).
    pub async fn allocate(&mut self) -> Outcome {
        let transport = [(REQUESTED_TRANSPORT, UDP.to_vec())];
        let challenge = self.ask(ALLOCATE, &transport, false).await;
        assert_eq!(challenge.outcome(ALLOCATE), Err(401), "credentials are needed");
        self.realm = challenge.attribute(REALM);
        self.nonce = challenge.attribute(NONCE);
        self.ask(ALLOCATE, &transport, true).await.outcome(ALLOCATE)
    }

    /// Asks to be allowed to send to a peer. Nothing is sent there by that.
    pub async fn permit(&mut self, peer: Ipv4Addr) -> Outcome {
        let [a, b, c, d] = COOKIE;
        let [e, f, g, h] = peer.octets();
        let address = vec![0, 1, 0x21, 0x12, a ^ e, b ^ f, c ^ g, d ^ h];
        let answer = self
            .ask(CREATE_PERMISSION, &[(XOR_PEER_ADDRESS, address)], true)
            .await;
        answer.outcome(CREATE_PERMISSION)
    }

    async fn ask(&mut self, kind: u16, attributes: &[(u16, Vec<u8>)], signed: bool) -> Answer {
        self.asked += 1;
        let mut transaction = [0; 12];
        transaction[..8].copy_from_slice(&self.asked.to_be_bytes());
        let request = if signed {
            self.signed(kind, transaction, attributes)
        } else {
            encode(kind, transaction, attributes, 0)
        };
        let asking = async {
            loop {
                // A server that doesn't listen yet makes the next call on the socket fail.
                let _ = self.socket.send(&request).await;
                if let Ok(answer) = timeout(AGAIN, self.hear(transaction)).await {
                    return answer;
                }
            }
        };
        timeout(DEADLINE, asking).await.expect("the TURN server answers")
    }

    async fn hear(&self, transaction: [u8; 12]) -> Answer {
        let mut datagram = [0; 2048];
        loop {
            let Ok(length) = self.socket.recv(&mut datagram).await else {
                tokio::task::yield_now().await;
                continue;
            };
            let datagram = &datagram[..length];
            if length >= 20 && datagram[8..20] == transaction {
                return decode(datagram);
            }
        }
    }

    fn signed(&self, kind: u16, transaction: [u8; 12], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut attributes = attributes.to_vec();
        attributes.push((USERNAME, self.username.clone().into_bytes()));
        attributes.push((REALM, self.realm.clone()));
        attributes.push((NONCE, self.nonce.clone()));
        // The length counts the integrity attribute that follows (RFC 8489, 14.5).
        let mut message = encode(kind, transaction, &attributes, 24);
        let realm = String::from_utf8(self.realm.clone()).unwrap();
        let key = Md5::digest(format!("{}:{realm}:{}", self.username, self.credential));
        let mut mac = Hmac::<Sha1>::new_from_slice(&key).unwrap();
        mac.update(&message);
        append(&mut message, MESSAGE_INTEGRITY, &mac.finalize().into_bytes());
        message
    }
}

impl Answer {
    fn attribute(&self, wanted: u16) -> Vec<u8> {
        let found = self.attributes.iter().find(|(kind, _)| *kind == wanted);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    fn outcome(&self, asked: u16) -> Outcome {
        if self.kind == asked | SUCCESS {
            return Ok(());
        }
        match self.attribute(ERROR_CODE).as_slice() {
            [_, _, hundreds, rest, ..] => Err(u16::from(*hundreds & 7) * 100 + u16::from(*rest)),
            _ => panic!("an answer of kind {:#x} without an error code", self.kind),
        }
    }
}

fn encode(kind: u16, transaction: [u8; 12], attributes: &[(u16, Vec<u8>)], more: usize) -> Vec<u8> {
    let mut body = Vec::new();
    attributes
        .iter()
        .for_each(|(kind, value)| append(&mut body, *kind, value));
    let length = u16::try_from(body.len() + more).unwrap();
    [
        &kind.to_be_bytes(),
        &length.to_be_bytes(),
        COOKIE.as_slice(),
        &transaction,
        &body,
    ]
    .concat()
}

fn append(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend(kind.to_be_bytes());
    bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn decode(datagram: &[u8]) -> Answer {
    let number = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    let mut attributes = Vec::new();
    let mut rest = &datagram[20..];
    while rest.len() >= 4 {
        let length = usize::from(number(&rest[2..]));
        attributes.push((number(rest), rest[4..4 + length].to_vec()));
        rest = &rest[(4 + length.next_multiple_of(4)).min(rest.len())..];
    }
    Answer {
        kind: number(datagram),
        attributes,
    }
}
