//! Asking a running control plane over REST.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Exit, Failure};
use crate::problem::Problem;

/// How long an answer may take: lists come from memory, so this is a dead peer, not a slow one.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Which control plane.
#[derive(Clone, Debug, Args)]
pub(super) struct Server {
    /// The API address of the control plane
    #[arg(long, value_name = "URL", env = "FOLDPLANE_SERVER", default_value = "http://127.0.0.1:18080")]
    #[arg(global = true)]
    pub(super) server: String,
}

impl Server {
    /// The answer to `GET path`, decoded.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        let response = self.send(path, query).await?;
        response.json().await.map_err(|fault| self.garbled(fault))
    }

    /// The answer to `GET path`, to be read piece by piece.
    pub(super) async fn send(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<reqwest::Response, Failure> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.ask(client()?.get(url)).await
    }

    /// The answer to a JSON body posted to `path`, decoded.
    pub(super) async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        let response = self.ask(client()?.post(self.url(path)?).json(body)).await?;
        response.json().await.map_err(|fault| self.garbled(fault))
    }

    /// The answer to a JSON body put at `path`, decoded.
    pub(super) async fn put<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        let response = self.ask(client()?.put(self.url(path)?).json(body)).await?;
        response.json().await.map_err(|fault| self.garbled(fault))
    }

    /// The answer to `DELETE path`, decoded.
    pub(super) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let response = self.ask(client()?.delete(self.url(path)?)).await?;
        response.json().await.map_err(|fault| self.garbled(fault))
    }

    fn url(&self, path: &str) -> Result<reqwest::Url, Failure> {
        reqwest::Url::parse(&self.server)
            .and_then(|base| base.join(path))
            .map_err(|fault| Failure::usage(format!("--server {}: {fault}", self.server)).hint(URL_HINT))
    }

    async fn ask(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Failure> {
        let response = request.send().await.map_err(|fault| self.unreachable(fault))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refused(response).await) }
    }

    async fn refused(&self, response: reqwest::Response) -> Failure {
        let status = response.status().as_u16();
        match response.json::<Problem>().await {
            Ok(problem) => {
                let message = format!("{} ({})", problem.detail, problem.code);
                Failure::new(exit_of(status), message).hint(problem.hint)
            }
            Err(_) => {
                let message = format!("{} answered with status {status}", self.server);
                Failure::new(exit_of(status), message).hint("is this the API address of a foldplane server?")
            }
        }
    }

    fn unreachable(&self, fault: reqwest::Error) -> Failure {
        Failure::new(Exit::Unreachable, format!("cannot reach the control plane at {}", self.server))
            .because(fault)
            .hint("start one with `foldplane serve`, or name another with --server or FOLDPLANE_SERVER")
    }

    /// The answer is not what a server of this version gives.
    pub(super) fn garbled(&self, fault: impl std::error::Error) -> Failure {
        Failure::fault(format!("{} gave an answer that cannot be read", self.server))
            .because(fault)
            .hint("is it a foldplane server of the same version?")
    }
}

fn client() -> Result<reqwest::Client, Failure> {
    reqwest::Client::builder()
        .connect_timeout(ANSWER_WITHIN)
        .read_timeout(ANSWER_WITHIN)
        .no_proxy()
        .build()
        .map_err(|fault| Failure::fault("cannot make an HTTP client").because(fault))
}

const URL_HINT: &str = "give a URL such as http://127.0.0.1:18080";

const fn exit_of(status: u16) -> Exit {
    match status {
        400 => Exit::Usage,
        401 | 403 => Exit::Denied,
        404 | 410 => Exit::NotFound,
        _ => Exit::Fault,
    }
}
