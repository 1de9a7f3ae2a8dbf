//! Compiles our own protocol without needing `protoc` on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let descriptors = protox::compile(["foldplane/worker/v1/worker.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
