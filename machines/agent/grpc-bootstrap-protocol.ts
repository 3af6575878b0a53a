/** Every event about the bootstrap file of gRPC without a proxy (spec/proxyless.md §4): sender and receiver. */

/** secrets/output → secrets, secrets → agent. Certificate, key and roots are in the directory of OUTPUT_CERTS. */
export type OutputWritten = { type: 'output.written' };
/** grpc-bootstrap → status. The file can be read, and so can the certificates that it names. */
export type GrpcBootstrapWritten = { type: 'grpc-bootstrap.written'; file: string };
/** grpc-bootstrap → agent. The file could not be written; the next attempt is in `pauseMs`. */
export type GrpcBootstrapFailed = { type: 'grpc-bootstrap.failed'; reason: string; pauseMs: number };
