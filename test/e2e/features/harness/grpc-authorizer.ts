/** A gRPC authorization service for requests and connections (envoy.service.auth.v3.Authorization). */
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';

/** `CheckResponse{status}`: OK is the empty message; `status {code: 7}` is PERMISSION_DENIED. */
const allowed = Buffer.alloc(0);
const denied = Buffer.of(0x0a, 0x02, 0x08, 0x07);

const raw = (bytes: Buffer): Buffer => bytes;

export class GrpcAuthorizer {
  readonly address = '127.0.0.1';
  /** The received CheckRequests, encoded; they contain the request's texts. */
  readonly requests: Buffer[] = [];
  allows = true;
  readonly port: number;
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  static async start(): Promise<GrpcAuthorizer> {
    const server = new Server();
    let authorizer: GrpcAuthorizer;
    const check = (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>): void => {
      authorizer.requests.push(call.request);
      callback(null, authorizer.allows ? allowed : denied);
    };
    const path = '/envoy.service.auth.v3.Authorization/Check';
    const method = { path, requestStream: false, responseStream: false };
    const coding = {
      requestSerialize: raw,
      requestDeserialize: raw,
      responseSerialize: raw,
      responseDeserialize: raw,
    };
    server.addService({ Check: { ...method, ...coding } }, { Check: check });
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
    authorizer = new GrpcAuthorizer(server, port);
    return authorizer;
  }

  async close(): Promise<void> {
    this.#server.forceShutdown();
  }
}
