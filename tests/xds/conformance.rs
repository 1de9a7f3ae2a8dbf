//! The conformance program's rules, on our own server; and the program itself with an adapter.

#[path = "../../examples/xds_conformance/checks.rs"]
mod checks;
#[path = "../../examples/xds_conformance/pushing.rs"]
mod pushing;
#[path = "../../examples/xds_conformance/state.rs"]
mod state;

use checks::{CHECKS, Target};
use state::State;

#[tokio::test(flavor = "multi_thread")]
async fn our_own_server_keeps_every_rule_that_can_be_seen_from_outside() {
    let (state, uri) = State::own().await.unwrap();
    let mut target = Target { uri, state };
    let mut broken = Vec::new();
    for check in CHECKS {
        for variant in check.variants {
            if let Err(error) = (check.run)(&mut target, *variant).await {
                broken.push(format!("{} {variant:?} {}: {error:#}", check.rule, check.what));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_sets_the_state_of_another_server() {
    let arguments = ["-c".to_owned(), "read line; echo ok; read line; echo \"no: $line\"".to_owned()];
    let mut state = State::adapter("sh", &arguments).unwrap();
    state.set("web=").await.unwrap();
    let error = state.set("pay=").await.unwrap_err();
    assert!(error.to_string().contains("no: set pay="), "{error}");
}
