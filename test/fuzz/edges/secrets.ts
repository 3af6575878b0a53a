/**
 * The agent's SDS server on its Unix socket, in this process, with clients that violate the protocol. A client only
 * receives secrets that it requested, once per request; the server forgets disconnected clients; and well-behaved
 * clients are served normally.
 */
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { ClientHttp2Stream } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { SdsReport } from '../../../machines/agent/secrets-protocol.ts';
import { secretType } from '../../../machines/discovery/xds/ads-types.ts';
import { SecretServer } from '../../../src/agent/secrets/secret-server.ts';
import { SecretVault } from '../../../src/agent/secrets/secret-vault.ts';
import { SecretSchema } from '../../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import {
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '../../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { GrpcConnection, onCallEnd } from '../../../src/runtime/grpc/grpc-client.ts';
import { FrameReader, frameHeadBytes, frameOf } from '../../../src/runtime/grpc/grpc-frames.ts';
import { silentLogger } from '../../../src/runtime/output/log.ts';
import { createAuthority } from '../../certs/authority.ts';
import { eventually } from '../../harness/eventually.ts';
import type { Draw } from '../../random-config/draw.ts';
import { abbreviate, type FuzzEdge, type FuzzSubject, type SubjectMaker } from '../edge.ts';
import { oddText } from '../grammar/breaking-words.ts';
import { mutatedBytes, randomBytes } from '../grammar/bytes.ts';
import { randomMessage } from '../grammar/protobuf.ts';

export const secretsMaker: SubjectMaker = {
  program: 'pilot-agent',
  name: 'secrets',
  edges: ['secret-session', 'secret-bytes'],
  batch: 50,
  open: () => SecretsSubject.start(),
};

const method = '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets';
const file = 'file-root:/certs/other.pem';
const servedNames = ['default', 'ROOTCA', file];
const names = [...servedNames, 'file-cert:/a~/b', 'nobody', ''];
const knownValues = { resource_names: names, type_url: [secretType], response_nonce: ['1', '2'] };
const maxResidentMiB = 600;
/** The server ends a stream after 5 s if the client does not read its end; the rest is reserve. */
const settleMs = 30_000;

class SecretsSubject implements FuzzSubject {
  readonly edges: readonly FuzzEdge[];
  readonly #directory = mkdtempSync(join(tmpdir(), 'fuzz-sds-'));
  readonly #vault = new SecretVault();
  readonly #authority = createAuthority();
  readonly #server: SecretServer;
  /** Names that the server reports as requested. */
  readonly #requestedNames = new Set<string>();
  readonly #versions = new Map<string, string>();
  readonly #problems: string[] = [];
  #isListening = false;
  #connection: GrpcConnection | undefined;

  private constructor() {
    const unbounded = { burst: 1e9, perSecond: 1e9 };
    const paces = { changes: unbounded, begun: unbounded };
    this.#server = new SecretServer({ vault: this.#vault, log: silentLogger, ...paces }, (event) =>
      this.#onReport(event),
    );
    const program = 'pilot-agent';
    this.edges = [
      { name: 'secret-session', program, attack: (draw) => this.#session(draw) },
      { name: 'secret-bytes', program, attack: (draw) => this.#bytes(draw) },
    ];
  }

  static async start(): Promise<SecretsSubject> {
    const subject = new SecretsSubject();
    await subject.#server.open(subject.#socket);
    if (!subject.#isListening) throw new Error('the secret server does not listen');
    subject.#renew();
    return subject;
  }

  get #socket(): string {
    return join(this.#directory, 'socket');
  }

  /** Acts like the secrets chart: serves existing secrets and rejects other names. */
  #onReport(event: SdsReport): void {
    if (event.type === 'sds.listening') this.#isListening = true;
    if (event.type === 'sds.unsubscribed' && !this.#requestedNames.delete(event.name))
      this.#problems.push(`no client requested ${event.name}`);
    if (event.type !== 'sds.subscribed') return;
    // A rejected name is requested again.
    if (this.#requestedNames.has(event.name) && servedNames.includes(event.name))
      this.#problems.push(`${abbreviate(event.name)} is requested already`);
    this.#requestedNames.add(event.name);
    if (event.name === file) this.#serveFile();
    else if (!servedNames.includes(event.name)) this.#server.refuse(event.name, 'unknown secret');
  }

  #serve(name: string, version: string): void {
    this.#versions.set(name, version);
    this.#server.serve(name, version);
  }

  #serveFile(): void {
    this.#serve(file, this.#vault.keepRoots(file, this.#authority.certificate));
  }

  #renew(): void {
    const { certificate, privateKey } = this.#authority.issue(['localhost']);
    const pair = { chain: certificate, key: createPrivateKey(privateKey) };
    this.#serve('default', this.#vault.keepCertificate('default', pair));
    this.#serve('ROOTCA', this.#vault.keepRoots('ROOTCA', this.#authority.certificate));
  }

  async #openConnection(): Promise<GrpcConnection> {
    if (this.#connection === undefined || this.#connection.closeError !== undefined) {
      this.#connection = await GrpcConnection.open({ address: { path: this.#socket } });
    }
    return this.#connection;
  }

  /** Sends valid requests in any order, with or without responses. */
  async #session(draw: Draw): Promise<string> {
    const client = new Client(await this.#openConnection());
    // Half of the requests repeat the previous names, like acknowledgements.
    const requestedNames: (readonly string[])[] = [draw.some(names, 1, 4)];
    for (let remaining = draw.int(0, 11); remaining > 0; remaining--) {
      requestedNames.push(draw.chance(0.5) ? requestedNames.at(-1)! : draw.some(names, 0, 4));
    }
    let [previousNames, maxResponses]: [readonly string[], number] = [[], 0];
    const thrown: string[] = [];
    for (const resourceNames of requestedNames) {
      if (client.isOver) break;
      const last = client.responses.at(-1);
      const responseNonce = draw.one(
        () => '',
        () => last?.nonce ?? '',
        () => last?.nonce ?? '',
        () => client.responses[0]?.nonce ?? '7',
        () => oddText(draw).slice(0, 50),
      );
      const errorDetail = draw.maybe('errorDetail', 0.2, () => ({ code: 13, message: oddText(draw) }));
      const request = {
        resourceNames: [...resourceNames],
        responseNonce,
        versionInfo: last?.versionInfo ?? '',
        ...errorDetail,
      };
      client.send(
        toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: secretType, ...request })),
      );
      thrown.push(JSON.stringify({ resourceNames, responseNonce }));
      maxResponses += resourceNames.filter((name) => !previousNames.includes(name)).length;
      previousNames = resourceNames;
      if (draw.chance(0.6)) await client.something();
    }
    await client.end(draw.chance(0.2));
    this.#judgeResponses(client, new Set(requestedNames.flat()), maxResponses);
    return thrown.join(' ');
  }

  #judgeResponses({ responses }: Client, requestedNames: ReadonlySet<string>, maxResponses: number): void {
    if (responses.length > maxResponses)
      throw new Error(`${responses.length} responses; ${maxResponses} names were requested`);
    if (new Set(responses.map(({ nonce }) => nonce)).size < responses.length) throw new Error('a nonce came twice');
    for (const { resources, versionInfo } of responses) {
      const foundNames = resources.map(({ value }) => fromBinary(SecretSchema, value).name);
      const [name = ''] = foundNames;
      if (foundNames.length !== 1 || !requestedNames.has(name))
        throw new Error(`${foundNames.join()} was sent without a request`);
      if (versionInfo !== this.#versions.get(name)) throw new Error(`an outdated version of ${name} was sent`);
    }
  }

  async #bytes(draw: Draw): Promise<string> {
    const client = new Client(await this.#openConnection());
    const message = (): Uint8Array => randomMessage(draw, DiscoveryRequestSchema, knownValues);
    const thrown = draw.list(1, 5, () =>
      draw.one<Uint8Array>(
        () => frameOf(message()),
        () => frameOf(message()),
        () => mutatedBytes(draw, frameOf(message())),
        () => frameOf(mutatedBytes(draw, message())),
        () => frameOf(randomBytes(draw, draw.int(0, 200))),
        () => randomBytes(draw, draw.int(0, 100)),
      ),
    );
    for (const bytes of thrown) {
      client.write(bytes);
      if (draw.chance(0.3)) await client.something();
    }
    await client.end(draw.chance(0.3));
    return thrown.map((bytes) => abbreviate(bytes, 60)).join(' ');
  }

  async findProblems(): Promise<string[]> {
    this.#renew();
    const problems = this.#problems.splice(0);
    const isIdle = await eventually('no secret is requested', () => this.#requestedNames.size === 0, {
      deadlineMs: settleMs,
    }).then(
      () => [],
      () => [
        `${[...this.#requestedNames].map((name) => abbreviate(name)).join()}: still requested after all clients have disconnected`,
      ],
    );
    // A separate connection, because the server closes one with too many protocol errors.
    const connection = await GrpcConnection.open({ address: { path: this.#socket } });
    const client = new Client(connection);
    const resourceNames = ['default', 'ROOTCA'];
    client.send(
      toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: secretType, resourceNames })),
    );
    const clientProblems = await eventually('both secrets', () => client.responses.length === 2, {
      deadlineMs: settleMs,
    }).then(
      () => [],
      () => [`a well-behaved client received ${client.responses.length} of two secrets`],
    );
    await client.end(false);
    connection.close();
    if (clientProblems.length === 0) this.#judgeResponses(client, new Set(resourceNames), 2);
    const residentMiB = process.memoryUsage().rss / 2 ** 20;
    const memoryProblems = residentMiB > maxResidentMiB ? [`${Math.round(residentMiB)} MiB are resident`] : [];
    return [...problems, ...isIdle, ...clientProblems, ...memoryProblems];
  }

  close(): Promise<void> {
    this.#connection?.close();
    this.#server.close();
    rmSync(this.#directory, { recursive: true, force: true });
    return Promise.resolve();
  }
}

class Client {
  readonly responses: DiscoveryResponse[] = [];
  readonly #stream: ClientHttp2Stream;
  readonly #closeEvent: Promise<unknown>;

  constructor(connection: GrpcConnection) {
    this.#stream = connection.start(method, {});
    this.#stream.on('error', () => {});
    this.#closeEvent = new Promise((resolve) => onCallEnd(this.#stream, connection, resolve));
    const reader = new FrameReader({ wholeBytes: 1 << 20 });
    this.#stream.on('data', (chunk: Buffer) =>
      reader.push(chunk, ({ bytes }) =>
        this.responses.push(fromBinary(DiscoveryResponseSchema, bytes.subarray(frameHeadBytes))),
      ),
    );
  }

  get isOver(): boolean {
    return this.#stream.closed || this.#stream.writableEnded || this.#stream.destroyed;
  }

  send(request: Uint8Array): void {
    this.write(frameOf(request));
  }

  write(bytes: Uint8Array): void {
    if (!this.isOver) this.#stream.write(bytes);
  }

  /** Waits a moment for a response. */
  async something(): Promise<void> {
    const stopController = new AbortController();
    const data = once(this.#stream, 'data', { signal: stopController.signal }).catch(() => {});
    await Promise.race([data, this.#closeEvent, sleep(3)]);
    stopController.abort();
  }

  async end(abruptly: boolean): Promise<void> {
    if (abruptly) this.#stream.close();
    else this.#stream.end();
    await this.#closeEvent;
  }
}
