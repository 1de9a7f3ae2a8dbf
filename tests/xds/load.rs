//! The benchmark in a small size, so that it does not rot.

#[path = "../../benches/xds/work.rs"]
mod work;

use foldplane::projection::resources::TypeUrl;
use work::{Crowd, Site, cycle, resident};

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_reached_while_some_stall_and_leaves_nothing_behind() {
    let site = Site::start(20).await;
    let address = site.server.address;
    cycle(address, 50).await;
    site.open(0).await;
    let before = resident();

    let crowd = tokio::spawn(async move { Crowd { reading: 20, stalled: 4 }.attend(address).await });
    site.reached(20).await;
    for _ in 0..5 {
        site.change_large().await;
        site.reached(20).await;
    }
    let small = site.median(20, Site::change_small).await;
    println!("one endpoint reaches 20 clients in {small:?}; digest {}", site.digest());
    assert_eq!(site.server.resources().of(TypeUrl::ClusterLoadAssignment).len(), 20);

    crowd.abort();
    cycle(address, 50).await;
    site.open(0).await;
    println!("memory before {before} and after {}", resident());
}
