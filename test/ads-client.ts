/**
 * An xDS client for tests: it opens streams of both protocols, sends given requests, can acknowledge automatically, and stores responses. It shares
 * no code with the server except the generated messages.
 */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { Client, type ClientDuplexStream, type ClientOptions, credentials, type StatusObject } from '@grpc/grpc-js';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../src/gen/envoy/service/discovery/v3/discovery_pb.ts';

const prefix = 'type.googleapis.com/';

export const typeUrls = {
  LDS: `${prefix}envoy.config.listener.v3.Listener`,
  CDS: `${prefix}envoy.config.cluster.v3.Cluster`,
  RDS: `${prefix}envoy.config.route.v3.RouteConfiguration`,
  EDS: `${prefix}envoy.config.endpoint.v3.ClusterLoadAssignment`,
  SDS: `${prefix}envoy.extensions.transport_sockets.tls.v3.Secret`,
} as const;
export type TypeName = keyof typeof typeUrls;

const services = {
  ADS: ['envoy.service.discovery.v3.AggregatedDiscoveryService', 'AggregatedResources'],
  LDS: ['envoy.service.listener.v3.ListenerDiscoveryService', 'Listeners'],
  CDS: ['envoy.service.cluster.v3.ClusterDiscoveryService', 'Clusters'],
  RDS: ['envoy.service.route.v3.RouteDiscoveryService', 'Routes'],
  EDS: ['envoy.service.endpoint.v3.EndpointDiscoveryService', 'Endpoints'],
  SDS: ['envoy.service.secret.v3.SecretDiscoveryService', 'Secrets'],
} as const;
export type ServiceName = keyof typeof services;

const timeoutMs = 30_000;

class TestStream<Request extends DescMessage, Response extends DescMessage> {
  /** All responses in order. */
  readonly responses: MessageShape<Response>[] = [];
  requests = 0;
  readonly ended: Promise<StatusObject>;
  onResponse: (response: MessageShape<Response>) => void = () => {};
  readonly #stream: ClientDuplexStream<Buffer, Buffer>;
  readonly #request: Request;
  #receivedCount = 0;
  #status: StatusObject | undefined;
  #wake = (): void => {};

  constructor(client: Client, path: string, request: Request, response: Response) {
    const asItIs = (bytes: Buffer): Buffer => bytes;
    this.#request = request;
    this.#stream = client.makeBidiStreamRequest(path, asItIs, asItIs);
    this.#stream.on('data', (bytes: Buffer) => {
      const message = fromBinary(response, bytes);
      this.responses.push(message);
      this.onResponse(message);
      this.#wake();
    });
    this.#stream.on('error', () => {});
    this.ended = new Promise((resolve) => this.#stream.on('status', resolve));
    void this.ended.then((status) => {
      this.#status = status;
      this.#wake();
    });
  }

  send(request: MessageInitShape<Request>): void {
    this.sendRaw(toBinary(this.#request, create(this.#request, request)));
  }

  sendRaw(bytes: Uint8Array): void {
    this.requests++;
    this.#stream.write(Buffer.from(bytes));
  }

  /** Returns the next response not yet returned. */
  async next(): Promise<MessageShape<Response>> {
    const deadline = Date.now() + timeoutMs;
    while (this.#receivedCount >= this.responses.length) {
      if (this.#status !== undefined) {
        const { code, details } = this.#status;
        throw new Error(`no response ${this.#receivedCount + 1}: the stream has ended with ${code}, ${details}`);
      }
      const remainingMs = deadline - Date.now();
      if (remainingMs <= 0) throw new Error(`no response ${this.#receivedCount + 1} within ${timeoutMs} ms`);
      await this.#change(remainingMs);
    }
    return this.responses[this.#receivedCount++]!;
  }

  /** Returns responses not yet returned, after waiting for responses in flight. */
  async unexpected(ms = 150): Promise<MessageShape<Response>[]> {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return this.responses.slice(this.#receivedCount);
  }

  /** Half-closes the stream and continues to read. */
  halfClose(): void {
    this.#stream.end();
  }

  cancel(): void {
    this.#stream.cancel();
  }

  /** Stops reading, so that flow control stops the server. */
  stopReading(): void {
    this.#stream.pause();
  }

  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

export type SotwStream = TestStream<typeof DiscoveryRequestSchema, typeof DiscoveryResponseSchema>;
export type DeltaStream = TestStream<typeof DeltaDiscoveryRequestSchema, typeof DeltaDiscoveryResponseSchema>;

export class AdsTestClient {
  readonly #client: Client;

  /**
   * @param port port on loopback, or a target such as `unix:/run/XDS`
   * @param channelCredentials without TLS by default
   */
  constructor(port: number | string, channelCredentials = credentials.createInsecure(), options: ClientOptions = {}) {
    // grpc-js shares connections between clients with equal options; this client needs a separate one.
    this.#client = new Client(typeof port === 'string' ? port : `127.0.0.1:${port}`, channelCredentials, {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': -1,
      ...options,
    });
  }

  sotw(service: ServiceName = 'ADS'): SotwStream {
    const [name, plural] = services[service];
    return new TestStream(this.#client, `/${name}/Stream${plural}`, DiscoveryRequestSchema, DiscoveryResponseSchema);
  }

  delta(service: ServiceName = 'ADS'): DeltaStream {
    const [name, plural] = services[service];
    return new TestStream(
      this.#client,
      `/${name}/Delta${plural}`,
      DeltaDiscoveryRequestSchema,
      DeltaDiscoveryResponseSchema,
    );
  }

  close(): void {
    this.#client.close();
  }
}
