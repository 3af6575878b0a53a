/**
 * One xDS stream without a network: the real connection chart, the real stream effect and a scripted source, under a virtual clock. The test plays
 * the client: it decides when a response is read, and what is sent.
 */
import { EventEmitter } from 'node:events';
import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Actor, type AnyActorRef, createActor, fromCallback } from 'xstate';
import { adsConnectionMachine } from '../../machines/discovery/xds/ads-connection.machine.ts';
import { routineMessages, type StreamOrder } from '../../machines/discovery/xds/ads-protocol.ts';
import { listenerType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import type { Watch, Watches } from '../../machines/discovery/xds/ads-watch.ts';
import { newRollout, type Rollout } from '../../machines/discovery/xds/cluster-rollout.ts';
import { type RolloutRules, rolloutRules } from '../../machines/discovery/xds/rollout-rules.ts';
import {
  type AdsLimits,
  defaultMakeBeforeBreakMs,
  defaultRemovalDelayMs,
  nameLimits,
  streamLimits,
} from '../../src/discovery/xds/ads-limits.ts';
import type { OneShot } from '../../src/discovery/xds/one-shot.ts';
import { RequestIntake } from '../../src/discovery/xds/requests/request-intake.ts';
import { RequestNameLists } from '../../src/discovery/xds/requests/request-names.ts';
import { immediateTurns } from '../../src/discovery/xds/requests/request-turns.ts';
import { SharedBodies } from '../../src/discovery/xds/responses/ads-response.ts';
import { DepartedClusters } from '../../src/discovery/xds/rollout/departed-clusters.ts';
import type { RolloutWait } from '../../src/discovery/xds/rollout/rollout-waits.ts';
import { AdsStream } from '../../src/discovery/xds/stream/ads-stream.ts';
import type { AdsCall } from '../../src/discovery/xds/stream/ads-transport.ts';
import { StreamShares } from '../../src/discovery/xds/stream/stream-shares.ts';
import { type Node, NodeSchema } from '../../src/gen/envoy/config/core/v3/base_pb.ts';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { type Logger, silentLogger } from '../../src/runtime/output/log.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import { stateName } from '../../src/runtime/trace/statechart.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { ScriptedSource } from './scripted-source.ts';
import { VirtualClock } from './virtual-clock.ts';

const envoyVersion = { case: 'userAgentVersion', value: '1.40.0' } as const;

/** A response as a client sees it. */
export interface ClientResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly version: string;
  /** Content by name: `name=<version>`. */
  readonly resources: ReadonlyMap<string, string>;
  readonly removedNames: readonly string[];
}

/** The part of grpc-js's stream that the effect uses. */
class ScriptedCall extends EventEmitter {
  cancelled = false;
  writableFinished = false;
  /** Written bytes, and the callback of each write. */
  readonly pendingWrites: { bytes: Buffer; flushed: () => void }[] = [];
  status: { code: number; details: string } | undefined;

  constructor() {
    super();
    this.on('error', (error: { code: number; details: string }) => {
      this.status ??= { code: error.code, details: error.details };
    });
  }

  /** Requests that the client has sent but the server has not read. */
  readonly #unreadRequests: Buffer[] = [];
  #isReadRequested = true;

  /** The server requests the next message. */
  _read(): void {
    this.#isReadRequested = true;
    this.#deliver();
  }

  receive(bytes: Buffer): void {
    this.#unreadRequests.push(bytes);
    this.#deliver();
  }

  /** Requests on their way to the server. */
  get unreadCount(): number {
    return this.#unreadRequests.length;
  }

  /** Like a flowing stream, reports each read message and requests the next one. */
  #deliver(): void {
    while (this.#isReadRequested && this.#unreadRequests.length > 0) {
      this.#isReadRequested = false;
      this.emit('data', this.#unreadRequests.shift());
      this._read();
    }
  }

  getPeer(): string {
    return '127.0.0.1:1';
  }

  write(bytes: Buffer, flushed: () => void): boolean {
    this.pendingWrites.push({ bytes, flushed });
    return true;
  }

  end(): void {
    if (this.writableFinished) return;
    this.writableFinished = true;
    this.status ??= { code: 0, details: '' };
    this.emit('finish');
  }
}

export interface AdsWorldOptions {
  isDelta?: boolean;
  onlyType?: string | null;
  resendsEndpoints?: boolean;
  acceptsLateNames?: boolean;
  node?: string;
  /** Whether the client is an Envoy (default: true). */
  isEnvoy?: boolean;
  /** Whether the client is sent secrets without being authenticated. */
  servesSecrets?: boolean;
  /** Metadata of the node. */
  metadata?: JsonObject;
  limits?: AdsLimits;
  /** Rules with deliberate faults. */
  rolloutRules?: Partial<RolloutRules>;
  source?: ScriptedSource;
  departedClusters?: DepartedClusters;
  clock?: VirtualClock;
  /** Lists of names that several worlds share, as a server's streams do. */
  lists?: RequestNameLists;
  /** Whether listeners and routes wait for the clusters that they name (default: false). */
  hasMakeBeforeBreak?: boolean;
  /** Whether routine events are reported, as at trace level full (default: true). */
  recordsRoutine?: boolean;
  logger?: Logger;
  oneShot?: OneShot;
  /** Whether a trace is recorded (default: true). Explorations build thousands of worlds and read no trace. */
  isRecorded?: boolean;
}

export class AdsWorld {
  /** All worlds of this process, for checks after tests. */
  static readonly instances: AdsWorld[] = [];
  readonly source: ScriptedSource;
  readonly clock: VirtualClock;
  readonly abandonedClusters = new Set<string>();
  /** Counts of the metrics `pilot_xds_kept_clusters` and `pilot_xds_given_up_clusters`. */
  readonly retainedCounts = new Map<string, number>();
  givenUp = 0;
  readonly records: TraceRecord[] = [];
  readonly call = new ScriptedCall();
  readonly actor: Actor<typeof adsConnectionMachine>;
  readonly judgedEvents: string[] = [];
  /** Number of XState's inspection events of the chart: its events, steps and actions. */
  inspectionCount = 0;
  failure: unknown;
  readonly #stream: AdsStream;
  readonly #isDelta: boolean;
  readonly #node: string;
  readonly #metadata: JsonObject | undefined;
  readonly #isEnvoy: boolean;
  #hasSentNode = false;

  constructor(options: AdsWorldOptions = {}) {
    AdsWorld.instances.push(this);
    const { isDelta = false, onlyType = null, resendsEndpoints = true, acceptsLateNames = true } = options;
    this.source = options.source ?? new ScriptedSource();
    this.clock = options.clock ?? new VirtualClock();
    const { node = 'sidecar~10.0.0.1~a.b~b.svc', recordsRoutine = true } = options;
    this.#isDelta = isDelta;
    this.#node = node;
    this.#metadata = options.metadata;
    this.#isEnvoy = options.isEnvoy ?? true;
    const call = this.call as unknown as AdsCall;
    this.#stream = new AdsStream(
      1,
      { call, intake: new RequestIntake(call, immediateTurns), kind: { path: '/test', isDelta, onlyType } },
      {
        source: this.source,
        observer: {
          responseRejected: (typeUrl, _node, reason) => void this.judgedEvents.push(`rejected ${typeUrl} ${reason}`),
          clustersRetained: (reason, change) =>
            void this.retainedCounts.set(reason, (this.retainedCounts.get(reason) ?? 0) + change),
          clustersGivenUp: (change) => {
            this.givenUp += change;
          },
          nonceExpired: (typeUrl) => void this.judgedEvents.push(`stale ${typeUrl}`),
        },
        logger: options.logger ?? silentLogger,
        shares: new StreamShares(1_000, () => {}),
        bodies: new SharedBodies(),
        nameLists: options.lists ?? new RequestNameLists(),
        turns: immediateTurns,
        closingTurns: immediateTurns,
        rules: { resendsEndpoints, acceptsLateNames, ...nameLimits(options.limits ?? {}) },
        reportsRoutine: recordsRoutine,
        ...(options.hasMakeBeforeBreak === true && {
          makeBeforeBreak: {
            references: this.source.references,
            removal: { delayMs: defaultRemovalDelayMs, drainMs: 45_000 },
            departedClusters: options.departedClusters ?? new DepartedClusters(45_000),
            limitMs: defaultMakeBeforeBreakMs,
            rules: { ...rolloutRules, ...options.rolloutRules },
          },
        }),
        secretsOnPlaintext: options.servesSecrets === true,
        ...(options.oneShot !== undefined && { oneShot: options.oneShot }),
        now: this.clock.now,
      },
    );
    const omits = recordsRoutine ? [] : routineMessages;
    const recorder = createRecorder({ program: 'test', now: this.clock.now, omits });
    recorder.observe((record) => this.records.push(record));
    const server = createActor(
      fromCallback(() => {}),
      { id: 'discovery/ads-server' },
    ) as AnyActorRef;
    this.actor = startRoot(adsConnectionMachine.provide({ actors: { stream: this.#streamLogic() } }), {
      id: 'ads-connection-1',
      input: { connection: 1, onlyType, ...streamLimits(options.limits ?? {}) },
      ...(options.isRecorded !== false && {
        recorder: {
          ...recorder,
          // As in the ADS server, whose events have no sending actor.
          inspect: (event) => {
            this.inspectionCount++;
            recorder.inspect(
              event.type === '@xstate.event' && event.sourceRef === undefined ? { ...event, sourceRef: server } : event,
            );
          },
        },
      }),
      clock: this.clock as never,
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  /** The state of the stream; while the stream is served, the state of delivery. */
  state(): string {
    return stateName(this.actor.getSnapshot().value).split(' | ')[0]!;
  }

  /** Whether listeners or routes wait for clusters. */
  get awaitsClusters(): boolean {
    return this.actor.getSnapshot().matches({ streaming: { clusters: 'pending' } });
  }

  /** Number of clusters that were evicted early. */
  get evictedCount(): number {
    return this.#stream.responder.gate?.evictedCount ?? 0;
  }

  /** The delayed resources of a type, with the reason. */
  waitsOf(typeUrl: string): readonly RolloutWait[] {
    return this.#stream.responder.gate?.waitsOf(typeUrl) ?? [];
  }

  get rollout(): Rollout {
    return this.#stream.responder.gate?.rollout ?? newRollout;
  }

  /** Versions of delayed resources, for the types that the client waits for. */
  get heldVersions(): (string | undefined)[] {
    return [listenerType, routeType].map((typeUrl) => this.#stream.responder.gate?.heldVersion(typeUrl));
  }

  /** Types of which the stream has a record of sent resources, in order. */
  get typesSent(): string[] {
    return [...this.#stream.responder.typesSent].sort();
  }

  resourcesOf(typeUrl: string): ReadonlyMap<string, unknown> {
    return this.#stream.responder.sentResourcesOf(typeUrl).resources;
  }

  /** Sent resources of a type as `name=version`. */
  sentOf(typeUrl: string): string[] {
    const sentResources = this.#stream.responder.sentResourcesOf(typeUrl);
    return [
      ...[...sentResources.resources.values()].map(({ name, version }) => `${name}=${version}`),
      `${sentResources.hasForgottenNames}`,
    ];
  }

  /** The response that the client reads next. */
  get next(): ClientResponse | undefined {
    const bytes = this.call.pendingWrites[0]?.bytes;
    return bytes && (this.#isDelta ? decodeDelta(bytes) : decodeSotw(bytes));
  }

  /** Types and nonces of responses on their way to the client. */
  get network(): string[] {
    const decode = this.#isDelta ? decodeDelta : decodeSotw;
    return this.call.pendingWrites.map(({ bytes }) => JSON.stringify([decode(bytes).typeUrl, decode(bytes).nonce]));
  }

  watch(typeUrl: string): Watch | undefined {
    return this.watches[typeUrl];
  }

  get watches(): Watches {
    return this.#stream.watches;
  }

  sendSotw(request: MessageInitShape<typeof DiscoveryRequestSchema>): void {
    const message = create(DiscoveryRequestSchema, request);
    message.node ??= this.#takeNode();
    this.sendBytes(toBinary(DiscoveryRequestSchema, message));
  }

  sendDelta(request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>): void {
    const message = create(DeltaDiscoveryRequestSchema, request);
    message.node ??= this.#takeNode();
    this.sendBytes(toBinary(DeltaDiscoveryRequestSchema, message));
  }

  sendBytes(bytes: Uint8Array): void {
    this.call.receive(Buffer.from(bytes));
  }

  /** Pushes changes like the ADS server. */
  push(...typeUrls: string[]): void {
    this.#stream.push(this.source.change(...typeUrls));
  }

  drain(withinMs: number): void {
    this.actor.send({ type: 'connection.drain', withinMs });
  }

  /** Responses on their way to the client. */
  get pendingWriteCount(): number {
    return this.call.pendingWrites.length;
  }

  /** The client reads the next response; `undefined` without one. */
  read(): ClientResponse | undefined {
    const next = this.call.pendingWrites.shift();
    if (next === undefined) return undefined;
    next.flushed();
    return this.#isDelta ? decodeDelta(next.bytes) : decodeSotw(next.bytes);
  }

  readAll(): ClientResponse[] {
    const all: ClientResponse[] = [];
    for (let next = this.read(); next !== undefined; next = this.read()) all.push(next);
    return all;
  }

  /** Returns the node for the first request, `undefined` for later ones. */
  #takeNode(): Node | undefined {
    if (this.#hasSentNode) return undefined;
    this.#hasSentNode = true;
    return create(NodeSchema, {
      ...{ id: this.#node, ...(this.#metadata && { metadata: this.#metadata }) },
      ...(this.#isEnvoy && { userAgentName: 'envoy', userAgentVersionType: envoyVersion }),
    });
  }

  #streamLogic() {
    return fromCallback<StreamOrder, { connection: number }>(({ receive, sendBack }) => {
      receive((order) => this.#stream.execute(order));
      this.#stream.start({
        report: (report) => {
          if (report.type === 'clusters.abandoned')
            for (const name of report.clusters) this.abandonedClusters.add(name);
          sendBack(report);
        },
        onPushed: (order) => this.actor.send(order),
        onResponded: () => {},
        onAcknowledged: () => {},
      });
      return () => this.#stream.dispose();
    });
  }
}

function decodeSotw(bytes: Buffer): ClientResponse {
  const response = fromBinary(DiscoveryResponseSchema, bytes);
  const { typeUrl, nonce, versionInfo: version } = response;
  const resources = new Map(response.resources.map(({ value }) => [text(value).split('=')[0]!, text(value)]));
  return { typeUrl, nonce, version, resources, removedNames: [] };
}

function decodeDelta(bytes: Buffer): ClientResponse {
  const response = fromBinary(DeltaDiscoveryResponseSchema, bytes);
  const { typeUrl, nonce, systemVersionInfo: version, removedResources: removed } = response;
  const resources = new Map(response.resources.map(({ name, resource }) => [name, text(resource!.value)]));
  return { typeUrl, nonce, version, resources, removedNames: removed };
}

function text(value: Uint8Array): string {
  return Buffer.from(value).toString('latin1');
}
