//! THE DOOR FOR WORKERS: the gRPC session in which workers and supervisors report.
