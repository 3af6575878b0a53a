/** secrets/output → secrets, secrets → agent. Certificate, key and roots are in the directory of OUTPUT_CERTS. */
export type OutputWritten = { type: 'output.written' };
/** grpc-bootstrap → status. The file and the certificates that it names can be read. */
export type GrpcBootstrapWritten = { type: 'grpc-bootstrap.written'; file: string };
/** grpc-bootstrap → agent. The file could not be written. `pauseMs`: time until the next attempt. */
export type GrpcBootstrapFailed = { type: 'grpc-bootstrap.failed'; reason: string; pauseMs: number };
