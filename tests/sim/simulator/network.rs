//! Proxies, their streams, and what is on its way between them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use foldplane::projection::resources::{Resources, TypeUrl};
use foldplane::testing::{Answer, Proxy};
use foldplane::xds::protocol::{Machine, Request, Response, ResponseType, Served, StreamId, Variant};
use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::acts::Options;
use super::checks;

/// So many proxies: either variant, over one stream or over one for each type.
pub(crate) const PROXIES: usize = 4;

/// So many responses fit in the buffers between the two ends, before the server waits for a proxy that does not read.
const WINDOW_RESPONSES: usize = 3;

/// A proxy, and all that is between it and the server.
pub(crate) struct Line {
    proxy: Proxy,
    lanes: Vec<Lane>,
    shape: Shape,
    stalled: bool,
    streams: u64,
    options: Options,
    rng: TestRng,
    /// How many responses went out.
    pub(crate) responses: u64,
}

/// How a proxy gets its types.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Aggregated,
    /// What one stream brings may overtake what another brings.
    OnePerType,
}

/// One stream: the server's end, and both directions.
struct Lane {
    served: Served,
    machine: Machine,
    to_proxy: VecDeque<(Duration, Arc<Response>, Duration)>,
    to_server: VecDeque<(Duration, Request)>,
    /// The clusters that the proxy was told of, or had before.
    told: BTreeSet<String>,
}

impl Line {
    pub(crate) fn new(number: usize, seed: u64, options: Options, resources: &Arc<Resources>) -> Self {
        let variant = if number.is_multiple_of(2) { Variant::Sotw } else { Variant::Delta };
        let shape = if number < PROXIES / 2 { Shape::Aggregated } else { Shape::OnePerType };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8] = u8::try_from(number).expect("few proxies");
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        // Streams of different proxies never have one number.
        let streams = (number as u64) << 32;
        let (lanes, proxy) = (Vec::new(), Proxy::new(variant));
        let mut line = Self { proxy, lanes, shape, stalled: false, streams, options, rng, responses: 0 };
        line.connect(resources, Duration::ZERO);
        line
    }

    /// Loses what is on its way, and opens its streams anew.
    pub(crate) fn connect(&mut self, resources: &Arc<Resources>, now: Duration) {
        let served = match self.shape {
            Shape::Aggregated => vec![Served::All],
            Shape::OnePerType => {
                vec![Served::Only(TypeUrl::Cluster), Served::Only(TypeUrl::ClusterLoadAssignment)]
            }
        };
        let variant = self.proxy.variant();
        let told: BTreeSet<String> = self.held_clusters().collect();
        self.lanes.clear();
        for served in served {
            self.streams += 1;
            let machine = Machine::new(StreamId(self.streams), variant, served, resources);
            let (to_proxy, to_server, told) = (VecDeque::new(), VecDeque::new(), told.clone());
            self.lanes.push(Lane { served, machine, to_proxy, to_server, told });
        }
        let requests = self.proxy.connect();
        self.send(requests, now);
    }

    fn held_clusters(&self) -> impl Iterator<Item = String> {
        let clusters = |((type_url, name), _)| (type_url == TypeUrl::Cluster).then_some(name);
        self.proxy.view().into_iter().filter_map(clusters)
    }

    /// Forgets everything, and comes back.
    pub(crate) fn restart(&mut self, resources: &Arc<Resources>, now: Duration) {
        self.proxy = Proxy::new(self.proxy.variant());
        self.stalled = false;
        self.connect(resources, now);
    }

    pub(crate) fn stall(&mut self) {
        self.stalled = true;
    }

    pub(crate) fn resume(&mut self) {
        self.stalled = false;
    }

    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// The clusters that the proxy cannot use, although their assignments were to follow them on the same stream. Over
    /// a stream for each type the server cannot know that a cluster has changed for the proxy (xds-rules 22).
    pub(crate) fn left_warming(&self) -> Option<&BTreeSet<String>> {
        Some(self.proxy.warming()).filter(|names| self.shape == Shape::Aggregated && !names.is_empty())
    }

    /// No more faults.
    pub(crate) fn calm(&mut self) {
        self.stalled = false;
        self.options = Options::default();
    }

    /// Whether anything moved.
    pub(crate) fn turn(&mut self, answer: Answer, resources: &Arc<Resources>, now: Duration) -> bool {
        let mut moved = false;
        for lane in &mut self.lanes {
            moved |= lane.hear(resources, now);
            while lane.to_proxy.len() < WINDOW_RESPONSES {
                let Some(response) = lane.machine.next(resources, now) else { break };
                lane.tell(&response, resources);
                let late = Duration::from_millis(self.rng.random_range(0..=self.options.delay_ms_max));
                let at = lane.to_proxy.back().map_or(now + late, |(before, _, _)| (now + late).max(*before));
                lane.to_proxy.push_back((at, response, now));
                self.responses += 1;
                moved = true;
            }
        }
        if !self.stalled {
            moved |= self.read(answer, now);
        }
        moved
    }

    /// The proxy reads what has come, and answers.
    fn read(&mut self, answer: Answer, now: Duration) -> bool {
        let mut moved = false;
        for lane in 0..self.lanes.len() {
            while let Some((_, response, sent)) =
                self.lanes[lane].to_proxy.pop_front_if(|(at, _, _)| *at <= now)
            {
                self.proxy.hear(response, sent);
                moved = true;
            }
        }
        let requests = self.proxy.answer(answer);
        moved |= !requests.is_empty();
        self.send(requests, now);
        moved
    }

    fn send(&mut self, requests: Vec<Request>, now: Duration) {
        for request in requests {
            let lane = self.lanes.iter_mut().find(|lane| match lane.served {
                Served::All => true,
                Served::Only(type_url) => type_url.as_str() == request.type_url,
            });
            let lane = lane.expect("it asks for types that are served");
            let late = Duration::from_millis(self.rng.random_range(0..=self.options.delay_ms_max));
            let at = lane.to_server.back().map_or(now + late, |(before, _)| (now + late).max(*before));
            if self.rng.random_ratio(self.options.doubles, 20) {
                self.proxy.has_asked_twice(&request);
                lane.to_server.push_back((at, request.clone()));
            }
            lane.to_server.push_back((at, request));
        }
    }
}

impl Lane {
    /// The server reads what has come.
    fn hear(&mut self, resources: &Arc<Resources>, now: Duration) -> bool {
        let mut moved = false;
        while let Some((_, request)) = self.to_server.pop_front_if(|(at, _)| *at <= now) {
            self.machine.on_request(&request, resources, now).expect("a well-formed message");
            moved = true;
        }
        moved
    }

    fn tell(&mut self, response: &Response, resources: &Resources) {
        let ResponseType::Served(type_url) = response.type_url else { return };
        let clusters = self.machine.status(TypeUrl::Cluster);
        // While a proxy has not answered for its clusters it gets no others, and the assignments do not wait for that.
        if self.served == Served::All && clusters.is_none_or(|clusters| clusters.in_flight.is_none()) {
            checks::order_of_types(&self.told, type_url, response, resources);
        }
        if type_url == TypeUrl::Cluster {
            // A response that is not whole says what is gone; one that is says what there is.
            self.told.extend(response.resources.iter().map(|cluster| cluster.name.to_string()));
            response.removed.iter().for_each(|name| drop(self.told.take(name.as_str())));
        }
    }
}
