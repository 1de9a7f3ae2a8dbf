//! `foldplane wait`: with an Envoy that accepts, and with clients that are slow, refuse, or are not concerned.

use std::process::Output;
use std::time::Duration;

use foldplane::projection::resources::TypeUrl;
use foldplane::xds::client::{Client, Update};
use foldplane::xds::protocol::Variant;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::plane::{Plane, foldplane, foldplane_json};
use crate::support::{SOON, World, eventually};

/// Registers a worker of `web`, and gives the offset from which its endpoint is published.
async fn register(plane: &Plane, id: &str) -> u64 {
    let url = format!("{}/v1/services/web/workers/{id}", plane.url());
    let body = json!({"host": "h1", "ttl_ms": 60_000, "ports": [{"name": "http"}]});
    let answer = reqwest::Client::new().put(url).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    answer.json::<Value>().await.unwrap()["generation"].as_u64().unwrap()
}

async fn wait(plane: &Plane, options: &[&str]) -> Output {
    foldplane(&[&["wait", "--server", &plane.url()], options].concat()).await
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// A client of clusters, as the node `node`.
async fn client(plane: &Plane, node: &str) -> Client {
    let uri = format!("http://{}", plane.xds);
    let mut client = Client::connect(&uri, node, Variant::Delta).await.unwrap();
    client.subscribe(TypeUrl::Cluster, &[]).await.unwrap();
    client
}

/// The next update that brings something.
async fn update(client: &mut Client) -> Update {
    tokio::time::timeout(SOON, client.next()).await.unwrap().unwrap()
}

#[tokio::test]
async fn with_an_envoy_it_ends_when_the_envoy_has_it() {
    let world = World::start().await;
    let offset = register(&world.plane, "a").await;
    // Named, so that it waits until the Envoy is there.
    let waited = wait(&world.plane, &["--offset", &offset.to_string(), "--node", "edge"]).await;
    assert_eq!(code(&waited), Some(0), "{waited:?}");
    assert_eq!(said(&waited).0, format!("@{offset} on 1 streams\n"));
    let hosts = world.proxy.hosts("web").await.unwrap();
    assert_eq!(hosts.len(), 1, "it ended, and the Envoy has it: {hosts:?}");
    // Latest is what the log is at now.
    let url = world.plane.url();
    let now = foldplane_json(&["wait", "-o", "json", "--server", &url]).await;
    assert_eq!((&now["outcome"], now["offset"].as_u64()), (&json!("reached"), Some(offset)));
}

#[tokio::test]
async fn a_slow_client_is_waited_for_and_named_when_the_time_is_over() {
    let plane = Plane::start().await;
    let mut slow = client(&plane, "slow-1").await;
    let first = update(&mut slow).await;
    slow.accept(&first).await.unwrap();
    let offset = register(&plane, "a").await;
    let late = update(&mut slow).await;

    let waited = wait(&plane, &["--timeout", "300ms"]).await;
    let (table, error) = said(&waited);
    assert_eq!(code(&waited), Some(3), "{table}{error}");
    let cells: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((cells[0], cells[3], cells[4]), ("slow-1", "CDS", "waiting"), "{table}");
    assert_eq!(cells[2], (offset - 1).to_string(), "how far it is behind: {table}");
    assert!(cells[5].starts_with("0-") && cells[6].starts_with(&format!("{offset}-")), "{table}");
    assert!(
        error.contains(&format!("1 of 1 streams have not accepted what there was at @{offset}")),
        "{error}"
    );

    // An earlier offset it has, and others are not kept waiting by it.
    assert_eq!(code(&wait(&plane, &["--offset", "@1", "--timeout", "5s"]).await), Some(0));
    let at = offset.to_string();
    let options = ["--offset", &at];
    let answer = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        slow.accept(&late).await.unwrap();
    };
    let (waited, ()) = tokio::join!(wait(&plane, &options), answer);
    assert_eq!(code(&waited), Some(0), "{waited:?}");
}

#[tokio::test]
async fn a_client_that_refuses_ends_the_wait_and_is_named_with_its_reason() {
    let plane = Plane::start().await;
    let mut picky = client(&plane, "picky").await;
    let first = update(&mut picky).await;
    picky.accept(&first).await.unwrap();
    let offset = register(&plane, "a").await;
    let refused = update(&mut picky).await;
    picky.reject(&refused, "no such thing").await.unwrap();

    let waited = wait(&plane, &["--offset", &offset.to_string()]).await;
    let (table, error) = said(&waited);
    assert_eq!(code(&waited), Some(1), "{table}{error}");
    assert!(table.contains("rejected") && table.contains("no such thing"), "{table}");
    assert!(error.contains("1 of 1 streams refused"), "{error}");
    // Whoever leaves is not waited for.
    drop(picky);
    eventually("the stream to end", async || {
        let waited = wait(&plane, &["--offset", &offset.to_string()]).await;
        if code(&waited) == Some(0) { Ok(()) } else { Err(format!("{waited:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_is_not_concerned_has_it() {
    let plane = Plane::start().await;
    let uri = format!("http://{}", plane.xds);
    let mut other = Client::connect(&uri, "other", Variant::Sotw).await.unwrap();
    other.subscribe(TypeUrl::ClusterLoadAssignment, &["something-else"]).await.unwrap();
    let first = update(&mut other).await;
    other.accept(&first).await.unwrap();
    let offset = register(&plane, "a").await;
    let waited = wait(&plane, &["--offset", &offset.to_string(), "--node", "oth?r"]).await;
    assert_eq!(code(&waited), Some(0), "{waited:?}");
    assert_eq!(said(&waited).0, format!("@{offset} on 1 streams\n"));
}

#[tokio::test]
async fn a_stream_that_has_said_nothing_yet_is_waited_for_but_not_for_ever() {
    let plane = Plane::start().await;
    let uri = format!("http://{}", plane.xds);
    let silent = Client::connect(&uri, "silent", Variant::Delta).await.unwrap();
    let waited = wait(&plane, &["--timeout", "200ms"]).await;
    assert_eq!(code(&waited), Some(3), "{waited:?}");
    assert!(said(&waited).0.contains("silent"), "{waited:?}");
    assert_eq!(code(&wait(&plane, &[]).await), Some(0), "after a while it does not count any more");
    drop(silent);
}

#[tokio::test]
async fn an_offset_that_is_not_there_yet_is_waited_for() {
    let plane = Plane::start().await;
    let ahead = wait(&plane, &["--offset", "@1000", "--timeout", "200ms"]).await;
    assert_eq!(code(&ahead), Some(3));
    assert!(said(&ahead).1.contains("the log is at @1, and not yet at @1000"), "{ahead:?}");
    let next = ["--offset", "@2"];
    let (waited, offset) = tokio::join!(wait(&plane, &next), register(&plane, "a"));
    assert_eq!((code(&waited), offset), (Some(0), 2), "{waited:?}");
    let nobody = wait(&plane, &["--node", "no-such-*", "--timeout", "100ms"]).await;
    assert_eq!(code(&nobody), Some(3));
    assert!(said(&nobody).1.contains("no such node is connected"), "{nobody:?}");
}

#[tokio::test]
async fn what_cannot_be_waited_for_is_a_usage_error() {
    let plane = Plane::start().await;
    for (options, words) in [
        (["--offset", "later"], "`later` is not an offset"),
        (["--node", "edge-[12]"], "only `*` and `?` are special"),
        (["--timeout", "soon"], "write a time such as"),
    ] {
        let refused = wait(&plane, &options).await;
        assert_eq!(code(&refused), Some(2), "{refused:?}");
        assert!(said(&refused).1.contains(words), "{refused:?}");
        assert!(said(&refused).0.is_empty());
    }
    for query in ["offset=x", "node=", "timeout_ms=60001", "nod=edge"] {
        let answer = reqwest::get(format!("{}/v1/wait?{query}", plane.url())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], "invalid_argument", "{query}");
    }
}

#[tokio::test]
async fn a_read_is_not_older_than_the_offset_that_it_names() {
    let plane = Plane::start().await;
    let url = format!("{}/v1/workers?min_offset=2&service=web", plane.url());
    let (answer, offset) = tokio::join!(reqwest::get(&url), register(&plane, "a"));
    let listing: Value = answer.unwrap().error_for_status().unwrap().json().await.unwrap();
    assert_eq!((listing["items"].as_array().unwrap().len(), offset), (1, 2), "{listing}");
    let answer = reqwest::get(format!("{}/v1/hosts?min_offset=two", plane.url())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
}
