//! Services that are declared: their ports, their clusters in a real Envoy, their end.

use serde_json::{Value, json};

use crate::support::plane::{Plane, foldplane, foldplane_json};
use crate::support::{World, eventually};

/// A request with a JSON body: the status and the answer.
async fn put(plane: &Plane, path: &str, body: &Value) -> (u16, Value) {
    let response =
        reqwest::Client::new().put(format!("{}{path}", plane.url())).json(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn register(plane: &Plane, service: &str, id: &str, ports: Value) -> (u16, Value) {
    let path = format!("/v1/services/{service}/workers/{id}");
    put(plane, &path, &json!({"host": "h1", "ports": ports})).await
}

#[tokio::test]
async fn workers_get_the_ports_that_their_service_declares() {
    let plane = Plane::start().await;
    let spec = json!({"ports": [{"name": "http"}, {"name": "admin", "number": 9901}]});
    assert_eq!(put(&plane, "/v1/services/web", &spec).await.0, 200);

    let (status, registered) =
        register(&plane, "web", "a", json!([{"name": "admin"}, {"name": "http"}])).await;
    assert_eq!((status, &registered["ports"]["admin"]), (201, &json!("127.0.0.1:9901")));
    let clusters = plane.get("/v1/services/web").await["clusters"].clone();
    assert_eq!(clusters, json!(["web", "web:admin"]), "the first declared port has the service's name");

    let (status, refused) = register(&plane, "web", "b", json!([{"name": "grpc"}])).await;
    assert_eq!((status, &refused["code"]), (409, &json!("not_declared")), "{refused}");
    assert_eq!(refused["hint"], "web is declared with http, admin");
    let (status, refused) = register(&plane, "web", "b", json!([{"name": "admin", "number": 9902}])).await;
    assert_eq!((status, &refused["code"]), (409, &json!("not_declared")), "{refused}");
    let (status, refused) = register(&plane, "web", "b", json!([{"name": "admin"}])).await;
    assert_eq!((status, &refused["code"]), (409, &json!("port_taken")), "a fixed port has one owner a host");

    // Nobody declared this one: it works as ever.
    assert_eq!(register(&plane, "free", "a", json!([{"name": "anything", "number": 9903}])).await.0, 201);
}

// moby/moby#4628 (F35)
#[tokio::test]
async fn f35_ports_and_declarations_outlive_a_crash() {
    let mut plane = Plane::start().await;
    let spec = json!({"ports": [{"name": "http"}, {"name": "admin", "number": 9901}]});
    assert_eq!(put(&plane, "/v1/services/web", &spec).await.0, 200);
    let ports = json!([{"name": "http"}, {"name": "admin"}]);
    let (_, first) = register(&plane, "web", "a", ports.clone()).await;
    plane.kill().await;
    plane.restart().await;
    let (status, other) = register(&plane, "web", "b", json!([{"name": "http"}])).await;
    assert_eq!(status, 201, "{other}");
    assert_ne!(other["ports"]["http"], first["ports"]["http"]);
    let (status, taken) = register(&plane, "web", "b", ports.clone()).await;
    assert_eq!((status, &taken["code"]), (409, &json!("port_taken")));
    let (_, again) = register(&plane, "web", "a", ports).await;
    assert_eq!(again["ports"], first["ports"], "who asks again gets what it has");
}

#[tokio::test]
async fn a_service_is_declared_and_retired_from_the_command_line() {
    let plane = Plane::start().await;
    let url = plane.url();
    let declare = async |more: &[&str]| {
        let words = [&["service", "declare", "pay", "--server", &url], more].concat();
        foldplane(&words).await
    };
    let flags =
        ["--port", "grpc=9000/http2", "--port", "admin", "--lb", "least-request", "--panic-threshold", "0"];
    let first = declare(&flags).await;
    assert!(first.status.success(), "{first:?}");
    let again = declare(&flags).await;
    assert_eq!(again.stdout, first.stdout, "said twice, it is one event");

    let shown = foldplane_json(&["service", "show", "pay", "--server", &url]).await;
    assert_eq!(shown["spec"]["ports"][0], json!({"name": "grpc", "number": 9000, "protocol": "http2"}));
    assert_eq!(shown["spec"]["cluster"]["lb"], "least_request");
    let file = plane.folder().join("pay.json");
    std::fs::write(&file, shown["spec"].to_string()).unwrap();
    let from_file =
        foldplane(&["service", "declare", "pay", "-f", &crate::support::text(&file), "--server", &url]).await;
    assert_eq!(from_file.stdout, first.stdout, "what is shown can be declared");

    for wrong in [
        &["--port", "grpc=0"][..],
        &["--port", "a/carrier-pigeon"],
        &["--lb", "psychic"],
        &["--panic-threshold", "101"],
        &["--port", "a", "--port", "a"],
        &["--port", "a", "-f", "pay.json"],
        &["-f", "/does/not/exist.json"],
    ] {
        let refused = declare(wrong).await;
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {refused:?}");
        assert!(refused.stdout.is_empty());
    }

    register(&plane, "pay", "a", json!([{"name": "grpc"}])).await;
    let retired = foldplane(&["service", "retire", "pay", "--server", &url]).await;
    assert!(retired.status.success(), "{retired:?}");
    let events = plane.events().await;
    let removed = &events[events.len() - 2]["event"]["WorkerRemoved"];
    assert_eq!(removed["cause"], "ServiceRetired");
    let again = foldplane(&["service", "retire", "pay", "--server", &url]).await;
    assert_eq!(again.stdout, retired.stdout);
    let gone = foldplane(&["service", "show", "pay", "--server", &url]).await;
    assert_eq!(gone.status.code(), Some(3), "{gone:?}");
}

#[tokio::test]
async fn envoy_takes_every_attribute_of_a_declared_cluster() {
    let World { proxy, plane } = World::start().await;
    let spec = json!({
        "ports": [{"name": "http", "protocol": "http2"}, {"name": "raw", "protocol": "tcp"}],
        "cluster": {"lb": "ring_hash", "connect_timeout_ms": 1500, "panic_threshold": 0, "locality_weighting": "on"},
    });
    assert_eq!(put(&plane, "/v1/services/web", &spec).await.0, 200);

    // Declared is published, workers or none.
    let dump = eventually("the declared clusters", async || {
        let dump =
            proxy.text("/config_dump?resource=dynamic_active_clusters").await.map_err(|f| f.to_string())?;
        let dump: Value = serde_json::from_str(&dump).map_err(|fault| fault.to_string())?;
        let clusters: Vec<Value> =
            dump["configs"].as_array().into_iter().flatten().map(|c| c["cluster"].clone()).collect();
        if clusters.len() == 2 { Ok(clusters) } else { Err(dump.to_string()) }
    })
    .await;
    let web = dump.iter().find(|cluster| cluster["name"] == "web").unwrap();
    assert_eq!(web["lb_policy"], "RING_HASH");
    assert_eq!(web["connect_timeout"], "1.500s");
    assert_eq!(
        web["common_lb_config"]["healthy_panic_threshold"],
        json!({}),
        "0 is written as an empty percentage"
    );
    assert!(web["common_lb_config"]["locality_weighted_lb_config"].is_object(), "{web}");
    assert!(web["typed_extension_protocol_options"].to_string().contains("http2_protocol_options"), "{web}");
    let rejected = plane.events().await.iter().filter(|e| e["event"]["UpdateRejected"].is_object()).count();
    assert_eq!(rejected, 0);
}
