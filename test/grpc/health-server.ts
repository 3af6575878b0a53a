/** A backend without xDS: the gRPC health service, whose responses contain the backend's name. */
import { Metadata, Server, ServerCredentials, status } from '@grpc/grpc-js';

const path = '/grpc.health.v1.Health/Check';
/** `status: SERVING`. */
const servingResponse = Buffer.from([8, 1]);

export class HealthServer {
  readonly name: string;
  readonly port: number;
  calls = 0;
  readonly #server: Server;

  private constructor(name: string, port: number, server: Server) {
    this.name = name;
    this.port = port;
    this.#server = server;
  }

  static async start(name: string): Promise<HealthServer> {
    const server = new Server();
    const failedCounts = new Map<string, number>();
    const backendRef = { backend: undefined as HealthServer | undefined };
    const bytes = (value: Buffer): Buffer => value;
    server.addService(
      {
        Check: {
          ...{ path, requestStream: false, responseStream: false },
          ...{
            requestSerialize: bytes,
            requestDeserialize: bytes,
            responseSerialize: bytes,
            responseDeserialize: bytes,
          },
        },
      },
      {
        Check: (
          call: { metadata: Metadata; sendMetadata(metadata: Metadata): void },
          callback: (error: object | null, value?: Buffer) => void,
        ) => {
          if (backendRef.backend) backendRef.backend.calls++;
          const headerValue = (header: string): string => String(call.metadata.get(header)[0] ?? '');
          // Fails as often as the header specifies, for each value of x-call. The failing response has no initial
          // metadata, because a client retries only such calls.
          const times = (failedCounts.get(headerValue('x-call')) ?? 0) + 1;
          failedCounts.set(headerValue('x-call'), times);
          if (times <= Number(headerValue('x-fail')))
            return callback({ code: status.UNAVAILABLE, details: 'as requested' });
          const header = new Metadata();
          header.set('x-backend', name);
          call.sendMetadata(header);
          return setTimeout(() => callback(null, servingResponse), Number(headerValue('x-delay-ms')));
        },
      } as never,
    );
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
    const backend = new HealthServer(name, port, server);
    backendRef.backend = backend;
    return backend;
  }

  /** Lets calls in progress complete. */
  async drain(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
  }

  stop(): void {
    this.#server.forceShutdown();
  }
}
