//! Wrong registrations on the worker session: each is answered with a reason and a hint, and the server goes on.

use std::time::Duration;

use foldplane::proto::attach_request::Request;
use foldplane::proto::attach_response::Response;
use foldplane::proto::workers_client::WorkersClient;
use foldplane::proto::{AttachRequest, AttachResponse, Port, Register, Rejected, answer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::support::eventually;
use crate::support::plane::Plane;

/// One open session with a control plane.
struct Session {
    requests: mpsc::Sender<AttachRequest>,
    answers: Streaming<AttachResponse>,
    sent: u64,
}

impl Session {
    async fn open(plane: &Plane) -> Self {
        let mut client = WorkersClient::connect(plane.url()).await.unwrap();
        let (requests, stream) = mpsc::channel(4);
        let answers = client.attach(ReceiverStream::new(stream)).await.unwrap().into_inner();
        Self { requests, answers, sent: 0 }
    }

    async fn register(&mut self, register: Register) -> Result<u64, Rejected> {
        self.sent += 1;
        let request = AttachRequest { request_id: self.sent, request: Some(Request::Register(register)) };
        self.requests.send(request).await.unwrap();
        let Some(Response::Answer(answer)) = self.answers.message().await.unwrap().unwrap().response else {
            panic!("an order instead of an answer");
        };
        assert_eq!(answer.request_id, self.sent);
        match answer.result.unwrap() {
            answer::Result::Accepted(accepted) => Ok(accepted.offset),
            answer::Result::Rejected(rejected) => Err(rejected),
        }
    }
}

fn good() -> Register {
    Register {
        service: "web".to_owned(),
        host: "h".to_owned(),
        id: "a".to_owned(),
        ports: vec![Port {
            name: "http".to_owned(),
            number: Some(9001),
            address: "127.0.0.1".to_owned(),
            ..Port::default()
        }],
        ..Register::default()
    }
}

fn with_port(number: Option<u32>, address: &str) -> Register {
    Register {
        ports: vec![Port { name: "http".to_owned(), number, address: address.to_owned(), ..Port::default() }],
        ..good()
    }
}

fn with_service(service: &str) -> Register {
    Register { service: service.to_owned(), ..good() }
}

#[tokio::test]
async fn a_registration_that_would_poison_a_response_is_refused_with_a_reason() {
    let plane = Plane::start().await;
    let mut session = Session::open(&plane).await;
    let cases = [
        (with_port(Some(9001), "localhost"), "localhost"),
        (with_port(Some(9001), "web.example"), "web.example"),
        (with_port(Some(0), "127.0.0.1"), "0"),
        (with_port(Some(65_536), "127.0.0.1"), "65536"),
        (with_service(""), "must not be empty"),
        (with_service(&"a".repeat(254)), "254 bytes"),
        (with_service("a\nb"), "not allowed"),
        (with_service("*"), "not allowed"),
        (Register { weight: Some(0), ..good() }, "weight"),
        (Register { id: "\u{0}".to_owned(), ..good() }, "not allowed"),
    ];
    for (register, words) in cases {
        let shown = format!("{register:?}").chars().take(200).collect::<String>();
        let rejected = session.register(register).await.expect_err(&shown);
        assert_eq!(rejected.code, "invalid_argument", "{shown}: {rejected:?}");
        assert!(rejected.message.contains(words), "{shown}: {rejected:?}");
        assert!(!rejected.hint.is_empty(), "{shown}: {rejected:?}");
        assert!(!rejected.message.chars().any(char::is_control), "{rejected:?}");
        assert!(rejected.message.len() < 1000, "{rejected:?}");
    }
    let offset = session.register(good()).await.unwrap();
    assert_eq!(plane.state().await["offset"], offset, "what was refused is not in the log");
    let endpoints = plane.get("/v1/endpoints").await;
    assert_eq!(endpoints["items"][0]["address"], "127.0.0.1:9001", "the server goes on: {endpoints}");
}

#[tokio::test]
async fn garbage_on_the_session_ends_that_session_alone() {
    let plane = Plane::start().await;
    let mut good_session = Session::open(&plane).await;
    good_session.register(good()).await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let post =
        b"POST /foldplane.worker.v1.Workers/Attach HTTP/1.1\r\nhost: x\r\ncontent-length: 4096\r\n\r\n";
    for head in [&b""[..], preface, post] {
        let mut stranger = TcpStream::connect(plane.api).await.unwrap();
        // It may be cut off in the middle of its garbage: that is what is wanted.
        let _cut_off = stranger.write_all(&[head, &[0xff; 4096]].concat()).await;
        let _closed = timeout(Duration::from_millis(200), stranger.read(&mut [0; 64])).await;
    }
    assert_eq!(plane.workers("web").await.len(), 1);
    let another = Register { id: "b".to_owned(), ..with_port(Some(9002), "127.0.0.1") };
    good_session.register(another).await.unwrap();
}

#[tokio::test]
async fn a_session_that_says_its_last_word_is_answered_all_that_it_said() {
    let plane = Plane::start().await;
    let mut session = Session::open(&plane).await;
    let other = Register { id: "b".to_owned(), ports: Vec::new(), ..good() };
    for (request_id, register) in [(1, good()), (2, with_service("")), (3, other)] {
        let request = AttachRequest { request_id, request: Some(Request::Register(register)) };
        session.requests.send(request).await.unwrap();
    }
    // Nothing is said any more, before anything is answered.
    drop(session.requests);
    let mut answered = Vec::new();
    while let Some(message) =
        timeout(Duration::from_secs(20), session.answers.message()).await.unwrap().unwrap()
    {
        if let Some(Response::Answer(answer)) = message.response {
            answered.push((answer.request_id, matches!(answer.result, Some(answer::Result::Accepted(_)))));
        }
    }
    assert_eq!(answered, [(1, true), (2, false), (3, true)]);
    eventually("its end takes its workers", async || {
        let workers = plane.get("/v1/workers").await;
        if workers["items"].as_array().is_some_and(Vec::is_empty) { Ok(()) } else { Err(workers.to_string()) }
    })
    .await;
}
