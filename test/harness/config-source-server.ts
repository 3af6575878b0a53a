/**
 * A source of configuration over xDS, like servers for Istio's client: `istio.mcp.v1alpha1.Resource`s by kind, as state of the world or delta. It
 * shares only generated messages with this project's client and server. Options make it violate the protocol.
 */
import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { type Any, AnySchema, anyPack } from '@bufbuild/protobuf/wkt';
import { Server, ServerCredentials, type ServerDuplexStream, status } from '@grpc/grpc-js';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { ResourceSchema } from '../../src/gen/istio/mcp/v1alpha1/resource_pb.ts';
import * as networking from '../../src/gen/istio/networking/v1alpha3/networking_pb.ts';
import * as policies from '../../src/gen/istio/security/v1beta1/policies_pb.ts';

export interface ConfigSourceServerOptions {
  /** Default `both`. With `sotw`, delta is UNIMPLEMENTED; with `silent delta`, a delta stream is accepted and gets no response. */
  readonly protocol?: 'both' | 'sotw' | 'silent delta';
  /** The only version in its type URLs; other types get no response, or an empty one. */
  readonly version?: string;
  readonly unknownTypes?: 'silent' | 'empty';
  readonly credentials?: ServerCredentials;
  /** 0 selects a free port. */
  readonly port?: number;
  /** Milliseconds before each response. */
  readonly delayMs?: number;
  /** The token that calls must have. */
  readonly token?: () => string;
}

/** Requests of a client for one type. */
export interface SeenRequest {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly version: string;
  readonly error: string;
  readonly protocol: 'sotw' | 'delta';
  readonly node: string;
  readonly generator: unknown;
}

type Call = ServerDuplexStream<Buffer, Buffer>;

interface Connected {
  readonly call: Call;
  readonly protocol: 'sotw' | 'delta';
  /** Versions of the client's resources by name, by type URL. */
  readonly watched: Map<string, Map<string, string>>;
}

const schemas: Readonly<Record<string, unknown>> = { ...networking, ...policies };
const groups: Readonly<Record<string, string>> = {
  AuthorizationPolicy: 'security.istio.io',
  PeerAuthentication: 'security.istio.io',
};

const service = (method: string, handler: (call: Call) => void) => ({
  definition: {
    path: `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`,
    requestStream: true,
    responseStream: true,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  },
  handler,
});

export class ConfigSourceServer {
  readonly requests: SeenRequest[] = [];
  /** Resources in their envelopes, by kind and name. */
  readonly objects = new Map<string, Map<string, { version: string; any: Any }>>();
  streams = 0;
  isRefusing = false;
  readonly #options: ConfigSourceServerOptions;
  #server: Server | undefined;
  #port = 0;
  #count = 0;
  readonly #connectedClients = new Set<Connected>();

  private constructor(options: ConfigSourceServerOptions) {
    this.#options = options;
  }

  static async start(options: ConfigSourceServerOptions = {}): Promise<ConfigSourceServer> {
    const source = new ConfigSourceServer(options);
    await source.#listen(options.port ?? 0);
    return source;
  }

  get port(): number {
    return this.#port;
  }

  get address(): string {
    return `xds://127.0.0.1:${this.#port}`;
  }

  /** Requests that reject a response. */
  get nacks(): readonly SeenRequest[] {
    return this.requests.filter(({ error }) => error !== '');
  }

  /** Stores an object, and sends its kind to every subscribed client. */
  put(kind: string, name: string, spec: JsonValue, { push = true, version = '', labels = {} } = {}): void {
    const schema = schemas[`${kind}Schema`] as DescMessage;
    this.putBody(kind, name, anyPack(schema, fromJson(schema, spec)), { push, version, labels });
  }

  putBody(
    kind: string,
    name: string,
    body: Any,
    {
      push = true,
      version = '',
      labels = {},
    }: { push?: boolean; version?: string; labels?: Record<string, string> } = {},
  ): void {
    const metadata = { name, version: version || `${++this.#count}`, labels };
    const packed = anyPack(ResourceSchema, create(ResourceSchema, { metadata, body }));
    this.putRaw(kind, name, packed, { push, version: metadata.version });
  }

  putRaw(kind: string, name: string, packed: Any, { push = true, version = `${++this.#count}` } = {}): void {
    const all = this.objects.get(kind) ?? new Map();
    this.objects.set(kind, all.set(name, { version, any: packed }));
    if (push) this.push(kind);
  }

  delete(kind: string, ...names: string[]): void {
    for (const name of names) this.objects.get(kind)?.delete(name);
    this.push(kind);
  }

  empty(): void {
    const kinds = [...this.objects.keys()];
    this.objects.clear();
    for (const kind of kinds) this.push(kind);
  }

  push(kind: string): void {
    for (const client of this.#connectedClients) {
      for (const typeUrl of client.watched.keys()) if (kindOf(typeUrl) === kind) this.#send(client, typeUrl);
    }
  }

  /** Ends all streams; the server keeps running. */
  close(code = status.UNAVAILABLE): void {
    for (const { call } of this.#connectedClients) call.emit('error', { code, details: 'closed by the test' });
    this.#connectedClients.clear();
  }

  /** Closes immediately, as a killed process does. */
  kill(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.#connectedClients.clear();
  }

  async restart(): Promise<void> {
    this.kill();
    await this.#listen(this.#port);
  }

  stop(): void {
    this.kill();
  }

  async #listen(port: number): Promise<void> {
    const server = new Server({ 'grpc.max_send_message_length': -1, 'grpc.max_receive_message_length': -1 });
    const sotw = service('StreamAggregatedResources', (call) => this.#serve(call, 'sotw'));
    const delta = service('DeltaAggregatedResources', (call) => this.#serve(call, 'delta'));
    server.addService(
      { sotw: sotw.definition, ...(this.#options.protocol !== 'sotw' && { delta: delta.definition }) } as never,
      { sotw: sotw.handler, delta: delta.handler } as never,
    );
    this.#port = await new Promise<number>((resolve, reject) =>
      server.bindAsync(
        `127.0.0.1:${port}`,
        this.#options.credentials ?? ServerCredentials.createInsecure(),
        (error, bound) => (error ? reject(error) : resolve(bound)),
      ),
    );
    this.#server = server;
  }

  #serve(call: Call, protocol: 'sotw' | 'delta'): void {
    this.streams += 1;
    const { token } = this.#options;
    const authorization = call.metadata.get('authorization')[0];
    if (token !== undefined && authorization !== `Bearer ${token()}`) {
      call.emit('error', { code: status.UNAUTHENTICATED, details: `no valid token: ${String(authorization)}` });
      return;
    }
    if (this.isRefusing) {
      call.emit('error', { code: status.UNAVAILABLE, details: 'refused by the test' });
      return;
    }
    const client: Connected = { call, protocol, watched: new Map() };
    this.#connectedClients.add(client);
    const leave = (): void => void this.#connectedClients.delete(client);
    call.on('cancelled', leave);
    call.on('error', leave);
    call.on('end', () => {
      leave();
      call.end();
    });
    call.on('data', (bytes: Buffer) => this.#read(client, bytes));
  }

  #read(client: Connected, bytes: Buffer): void {
    const request = this.#note(client, bytes);
    // The nonce does not identify a first request, because Istio's client makes one up.
    if (client.watched.has(request.typeUrl)) return;
    if (client.protocol === 'delta' && this.#options.protocol === 'silent delta') return;
    const { version, unknownTypes = 'empty' } = this.#options;
    const isKnownVersion = version === undefined || request.typeUrl.split('/')[1] === version;
    if (!isKnownVersion && unknownTypes === 'silent') return;
    client.watched.set(request.typeUrl, new Map(Object.entries(request.initialVersions)));
    this.#send(client, request.typeUrl);
  }

  #note({ protocol }: Connected, bytes: Buffer): { typeUrl: string; initialVersions: Record<string, string> } {
    const isState = protocol === 'sotw';
    const request: MessageShape<typeof DiscoveryRequestSchema> | MessageShape<typeof DeltaDiscoveryRequestSchema> =
      isState ? fromBinary(DiscoveryRequestSchema, bytes) : fromBinary(DeltaDiscoveryRequestSchema, bytes);
    const { typeUrl, responseNonce: nonce, errorDetail, node } = request;
    this.requests.push({
      ...{ typeUrl, nonce, protocol },
      version: 'versionInfo' in request ? request.versionInfo : '',
      error: errorDetail?.message ?? '',
      node: node?.id ?? '',
      generator: node?.metadata?.GENERATOR,
    });
    return {
      typeUrl,
      initialVersions: 'initialResourceVersions' in request ? { ...request.initialResourceVersions } : {},
    };
  }

  #send(client: Connected, typeUrl: string): void {
    const { delayMs = 0 } = this.#options;
    if (delayMs > 0) setTimeout(() => this.#sendNow(client, typeUrl), delayMs).unref();
    else this.#sendNow(client, typeUrl);
  }

  #sendNow({ call, protocol, watched }: Connected, typeUrl: string): void {
    const { version } = this.#options;
    const isKnownVersion = version === undefined || typeUrl.split('/')[1] === version;
    const isServedGroup = typeUrl.startsWith(groups[kindOf(typeUrl)] ?? 'networking.istio.io');
    const objects = isKnownVersion && isServedGroup ? (this.objects.get(kindOf(typeUrl)) ?? new Map()) : new Map();
    const nonce = `n${++this.#count}`;
    if (protocol === 'sotw') {
      const resources = [...objects.values()].map(({ any }) => any);
      const response = create(DiscoveryResponseSchema, { typeUrl, nonce, versionInfo: nonce, resources });
      call.write(Buffer.from(toBinary(DiscoveryResponseSchema, response)));
      return;
    }
    const watchedVersions = watched.get(typeUrl)!;
    const resources = [...objects].flatMap(([name, one]) =>
      watchedVersions.get(name) === one.version
        ? []
        : [{ name, version: one.version, resource: create(AnySchema, one.any) }],
    );
    const removedResources = [...watchedVersions.keys()].filter((name) => !objects.has(name));
    watched.set(typeUrl, new Map([...objects].map(([name, one]) => [name, one.version])));
    const response = create(DeltaDiscoveryResponseSchema, {
      typeUrl,
      nonce,
      systemVersionInfo: nonce,
      resources,
      removedResources,
    });
    call.write(Buffer.from(toBinary(DeltaDiscoveryResponseSchema, response)));
  }

  /** Writes raw bytes to every client. */
  writeRaw(bytes: Uint8Array): void {
    for (const { call } of this.#connectedClients) call.write(Buffer.from(bytes));
  }
}

function kindOf(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
}

/** A ServiceEntry with one endpoint. */
export function entrySpec(host: string, port = 80, address = '10.1.1.1'): JsonValue {
  return {
    hosts: [host],
    resolution: 'STATIC',
    ports: [{ number: port, name: 'http', protocol: 'HTTP' }],
    endpoints: [{ address }],
  };
}
