//! Between the wire's messages and commands. Everything that enters is checked here or in `decide`.

use crate::command::{
    Command, PortRequest, Registering, Rejection, ip_literal, listen, port_number, port_range, weight,
};
use crate::engine::{Accepted, SubmitError};
use crate::events::event::{
    Endpoint, EndpointAddress, ExitStatus, HealthSource, HostReport, Lease, Locality, Process, Readiness,
    RemovalCause, Verdict,
};
use crate::events::{
    Generation, HostName, InvalidName, Offset, PortName, ServiceName, SessionId, WorkerId, WorkerKey,
    WorkerRef,
};
use crate::projection::state::Worker;
use crate::proto;
use crate::proto::attach_request::Request;
use crate::proto::{AttachRequest, AttachResponse, answer, attach_response, exit};

/// The command that a request stands for.
pub(super) fn command(request: AttachRequest, session: &SessionId) -> Result<Command, Rejection> {
    let missing =
        || missing("request", "send one of report_host, register, rejoin, ready, unready, drain, deregister");
    match request.request.ok_or_else(missing)? {
        Request::ReportHost(report) => report_host(&report),
        Request::Register(register) => registering(register, session).map(Command::Register),
        Request::Rejoin(proto::Rejoin { worker }) => {
            Ok(Command::Rejoin { worker: reference(worker)?, session: session.clone() })
        }
        Request::Ready(proto::Ready { worker }) => Ok(Command::Ready { worker: reference(worker)? }),
        Request::Unready(proto::Unready { worker, reason }) => {
            Ok(Command::Unready { worker: reference(worker)?, reason })
        }
        Request::Drain(proto::Drain { worker, reason, drain_ms }) => {
            Ok(Command::Drain { worker: reference(worker)?, reason, drain_ms })
        }
        Request::ReportHealth(report) => report_health(report),
        Request::Reweight(proto::Reweight { worker, weight: given }) => Ok(Command::Reweight {
            worker: reference(worker)?,
            weight: given.map(|given| weight("weight", given)).transpose()?,
        }),
        Request::ReportBusyPort(proto::ReportBusyPort { host, port }) => {
            Ok(Command::ReportBusyPort { host: HostName::new(&host)?, port: port_number("port", port)? })
        }
        Request::Deregister(proto::Deregister { worker, exit }) => {
            Ok(Command::Remove { worker: reference(worker)?, cause: removal_cause(exit) })
        }
    }
}

/// The worker that a session will speak for once the command is accepted.
pub(super) fn subject(command: &Command) -> Option<WorkerKey> {
    match command {
        Command::Register(wish) => Some(wish.worker.clone()),
        Command::Rejoin { worker, .. } => Some(worker.key.clone()),
        Command::StartReplica { .. }
        | Command::ReportHost { .. }
        | Command::Renew { .. }
        | Command::ExpireSilent { .. }
        | Command::ReviewHold { .. }
        | Command::EndHold { .. }
        | Command::Ready { .. }
        | Command::Unready { .. }
        | Command::Drain { .. }
        | Command::Remove { .. }
        | Command::ReportHealth { .. }
        | Command::Reweight { .. }
        | Command::ReportBusyPort { .. }
        | Command::DrainHost { .. }
        | Command::RemoveHost { .. }
        | Command::DeclareService { .. }
        | Command::RetireService { .. }
        | Command::SetPolicy { .. }
        | Command::CloseSession { .. }
        | Command::EndGrace { .. }
        | Command::SetView { .. }
        | Command::RemoveView { .. }
        | Command::RecordRejection { .. }
        | Command::ChangeResources(_) => None,
    }
}

/// The answer to what was accepted, and the worker that the session speaks for from now on.
pub(super) fn accepted(
    request_id: u64,
    accepted: &Accepted,
    subject: Option<&WorkerKey>,
) -> (AttachResponse, Option<WorkerRef>) {
    // A worker that is gone again within the same batch is answered without its registration; a stop follows.
    let live = subject.and_then(|key| Some((key, accepted.snapshot.state().workers().get(key)?)));
    let registered = live.map(|(key, live)| registered(key, live));
    let result = answer::Result::Accepted(proto::Accepted { offset: accepted.offset.get(), registered });
    let reference = live.map(|(key, live)| WorkerRef { key: key.clone(), generation: live.generation });
    (answer(request_id, result), reference)
}

/// The answer to what was refused.
pub(super) fn rejected(request_id: u64, rejection: &Rejection) -> AttachResponse {
    let result = answer::Result::Rejected(proto::Rejected {
        code: rejection.code.as_str().to_owned(),
        message: rejection.message.clone(),
        hint: rejection.hint.clone(),
    });
    answer(request_id, result)
}

/// The answer when nothing can be written.
pub(super) fn unavailable(request_id: u64, fault: &SubmitError) -> AttachResponse {
    let result = answer::Result::Rejected(proto::Rejected {
        code: "storage_unavailable".to_owned(),
        message: fault.to_string(),
        hint: "nothing was changed: try again".to_owned(),
    });
    answer(request_id, result)
}

/// A reference as the wire has it.
pub(super) fn worker(worker: &WorkerRef) -> proto::WorkerRef {
    proto::WorkerRef {
        service: worker.key.service.to_string(),
        host: worker.key.host.to_string(),
        id: worker.key.id.to_string(),
        generation: worker.generation.offset().get(),
    }
}

fn answer(request_id: u64, result: answer::Result) -> AttachResponse {
    attach_response::Response::Answer(proto::Answer { request_id, result: Some(result) }).into()
}

fn registered(key: &WorkerKey, live: &Worker) -> proto::Registered {
    let reference = WorkerRef { key: key.clone(), generation: live.generation };
    proto::Registered {
        worker: Some(worker(&reference)),
        ports: live.registration.endpoints.iter().map(port).collect(),
    }
}

fn port(endpoint: &Endpoint) -> proto::Port {
    let name = endpoint.port.to_string();
    match &endpoint.address {
        EndpointAddress::Ip(address) => proto::Port {
            name,
            number: Some(address.port().into()),
            address: address.ip().to_string(),
            path: String::new(),
        },
        EndpointAddress::Unix(path) => {
            proto::Port { name, number: None, address: String::new(), path: path.to_string() }
        }
    }
}

fn missing(field: &str, hint: &str) -> Rejection {
    Rejection::invalid(format!("{field} is missing"), hint)
}

fn reference(worker: Option<proto::WorkerRef>) -> Result<WorkerRef, Rejection> {
    let worker =
        worker.ok_or_else(|| missing("worker", "name the worker by service, host, id and generation"))?;
    let key = WorkerKey {
        service: ServiceName::new(&worker.service)?,
        host: HostName::new(&worker.host)?,
        id: WorkerId::new(&worker.id)?,
    };
    Ok(WorkerRef { key, generation: Generation::at(Offset::new(worker.generation)) })
}

/// Who watches a worker, as its text says.
pub(super) fn health_source(text: &str) -> Result<HealthSource, InvalidName> {
    Ok(match text {
        "" | "worker" => HealthSource::Worker,
        "process" => HealthSource::Process,
        "memory" => HealthSource::Memory,
        "utilization" => HealthSource::Utilization,
        other => HealthSource::Custom(PortName::new(other.strip_prefix("custom:").unwrap_or(other))?),
    })
}

fn report_health(report: proto::ReportHealth) -> Result<Command, Rejection> {
    let verdict = match report.verdict() {
        proto::Verdict::Healthy => Verdict::Healthy,
        proto::Verdict::Degraded => Verdict::Degraded,
        proto::Verdict::Unhealthy => Verdict::Unhealthy,
        proto::Verdict::Unspecified => {
            return Err(missing("verdict", "say healthy, degraded or unhealthy"));
        }
    };
    let source = health_source(&report.source)?;
    Ok(Command::ReportHealth { worker: reference(report.worker)?, source, verdict, reason: report.reason })
}

fn report_host(report: &proto::ReportHost) -> Result<Command, Rejection> {
    let addresses = report.addresses.iter().map(|text| ip_literal("addresses", text));
    Ok(Command::ReportHost {
        host: HostName::new(&report.host)?,
        report: HostReport {
            addresses: addresses.collect::<Result<_, _>>()?,
            port_range: port_range(report.port_first, report.port_last)?,
            locality: report.locality.clone().map(locality).unwrap_or_default(),
        },
    })
}

fn registering(register: proto::Register, session: &SessionId) -> Result<Registering, Rejection> {
    let readiness = register.readiness();
    let id = match register.id.as_str() {
        "" => new_worker_id(),
        given => WorkerId::new(given)?,
    };
    Ok(Registering {
        worker: WorkerKey {
            service: ServiceName::new(&register.service)?,
            host: HostName::new(&register.host)?,
            id,
        },
        ports: register.ports.iter().map(port_request).collect::<Result<_, _>>()?,
        readiness: match readiness {
            proto::Readiness::Unspecified | proto::Readiness::Assumed => Readiness::Assumed,
            proto::Readiness::Reported => Readiness::Reported,
        },
        weight: register.weight.map(|given| weight("weight", given)).transpose()?,
        priority: register.priority,
        locality: register.locality.map(locality),
        metadata: register.metadata.into_iter().collect(),
        process: register.process.map(process).transpose()?,
        session: session.clone(),
        lease: Lease::Session { disconnect_grace_ms: register.disconnect_grace_ms },
    })
}

/// Chance enters here, as part of the command.
fn new_worker_id() -> WorkerId {
    WorkerId::new(&uuid::Uuid::now_v7().simple().to_string()).expect("a UUID is a name")
}

fn port_request(port: &proto::Port) -> Result<PortRequest, Rejection> {
    let given = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
    let (address, path) = (given(&port.address), given(&port.path));
    let listen = listen(port.number, address.as_deref(), path.as_deref());
    let of_port = |rejection: Rejection| Rejection {
        message: format!("port {}: {}", port.name.escape_debug(), rejection.message),
        ..rejection
    };
    Ok(PortRequest { name: PortName::new(&port.name)?, listen: listen.map_err(of_port)? })
}

fn locality(locality: proto::Locality) -> Locality {
    Locality { region: locality.region, zone: locality.zone, sub_zone: locality.sub_zone }
}

fn process(process: proto::Process) -> Result<Process, Rejection> {
    /// The length of a boot id: a UUID in text.
    const BOOT_ID_BYTES_MAX: usize = 64;
    if process.boot_id.len() > BOOT_ID_BYTES_MAX {
        return Err(Rejection::invalid(
            "boot_id is too long",
            "give the text of /proc/sys/kernel/random/boot_id",
        ));
    }
    Ok(Process { pid: process.pid, start_ticks: process.start_ticks, boot_id: process.boot_id })
}

fn removal_cause(exit: Option<proto::Exit>) -> RemovalCause {
    match exit.and_then(|exit| exit.status) {
        None => RemovalCause::Deregistered,
        Some(exit::Status::Code(code)) => RemovalCause::Exited(ExitStatus::Code(code)),
        Some(exit::Status::Signal(signal)) => RemovalCause::Exited(ExitStatus::Signal(signal)),
    }
}
