//! Where events come from: a data folder, or a running control plane.

use std::path::PathBuf;

use clap::Args;
use futures_util::TryStreamExt;
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::io::StreamReader;

use super::fetch::Server;
use super::{Failure, block_on};
use crate::config::default_data_dir;
use crate::events::log::{LogReader, OfflineLog, open_reader, read_ahead};
use crate::events::{Envelope, Offset};

/// The longest line of the log as JSON, in bytes: several times the largest event.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Which log.
#[derive(Debug, Args)]
pub(super) struct Source {
    /// The data folder of a control plane that is stopped [default: the per-user state folder]
    #[arg(value_name = "DATA-DIR", env = "FOLDPLANE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Read the log of the running control plane at this URL instead
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

impl Source {
    /// Hands every event from `from` to `until`, or to the end, to `take`, in order.
    pub(super) fn read(
        &self,
        from: Option<Offset>,
        until: Option<Offset>,
        take: impl FnMut(Envelope) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match &self.server {
            Some(server) => {
                let server = Server { server: server.clone() };
                block_on(from_server(&server, from, until, take))
            }
            None => {
                let log = self.open()?;
                let from = from.unwrap_or_else(|| log.oldest());
                if from > log.head().offset {
                    return Ok(());
                }
                read_ahead(&log, from, until, take)
            }
        }
    }

    fn open(&self) -> Result<OfflineLog, Failure> {
        let folder = self.data_dir.clone().or_else(default_data_dir).ok_or_else(|| {
            Failure::usage("there is no per-user folder for the log").hint("name the data folder")
        })?;
        Ok(open_reader(&folder)?)
    }
}

async fn from_server(
    server: &Server,
    from: Option<Offset>,
    until: Option<Offset>,
    mut take: impl FnMut(Envelope) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let ends = [("from", from), ("until", until)];
    let query: Vec<(&str, String)> =
        ends.into_iter().filter_map(|(name, end)| Some((name, end?.get().to_string()))).collect();
    let response = server.send("/v1/events", &query).await?;
    let bytes = response.bytes_stream().map_err(std::io::Error::other);
    let mut lines =
        FramedRead::new(StreamReader::new(bytes), LinesCodec::new_with_max_length(LINE_BYTES_MAX));
    while let Some(line) = lines.try_next().await.map_err(|fault| server.garbled(fault))? {
        take(serde_json::from_str(&line).map_err(|fault| server.garbled(fault))?)?;
    }
    Ok(())
}
