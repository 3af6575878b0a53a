/**
 * An API server of Kubernetes behind the port, in virtual time, as far as informers can distinguish it from a real one; a test orders its faults. It keeps all earlier states, so that
 * the state of a client can be checked against them.
 */
import { ApiError, type ApiFailure } from '../../src/discovery/kubernetes/api-failure.ts';
import { type ApiResource, apiVersionOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type {
  ApiServer,
  KubernetesObject,
  ListOptions,
  ObjectPage,
  WatchEnd,
  WatchEvent,
  WatchOptions,
} from '../../src/discovery/kubernetes/api-server.ts';
import type { VirtualClock } from './virtual-clock.ts';

type Objects = ReadonlyMap<string, KubernetesObject>;

interface HistoryEvent {
  readonly version: number;
  readonly resource: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubernetesObject;
}

/** One history; a restore begins another. */
interface Era {
  readonly history: HistoryEvent[];
  /** States of a kind, by version at which it changed. */
  readonly states: Map<string, Map<number, Objects>>;
}

/** Everything that runs over a connection ends with it. */
interface Connection {
  isDead: boolean;
  readonly runningCalls: Set<RunningCall>;
}

interface RunningCall {
  readonly connection: Connection;
  readonly fail: (failure: ApiFailure) => void;
  readonly watch?: OpenWatch;
}

interface OpenWatch {
  readonly resource: string;
  /** Versions up to this one are not sent. */
  sentVersion: number;
  events: number;
  readonly onEvent: (event: WatchEvent) => void;
  readonly onEnd: () => void;
}

export interface Faults {
  /** No process listens. */
  isDown: boolean;
  /** The network drops all bytes: no data arrives, and no connection closes. */
  isSilent: boolean;
  /** Delay of responses. */
  slowMs: number;
  /** The end of a streamed first list is never sent. */
  hasEndlessLists: boolean;
  /** Lists as streams are rejected, as older servers do. */
  withoutStreams: boolean;
  expiredToken: boolean;
  isThrottled: boolean;
  /** Watches end right after they open. */
  endsWatchesEarly: boolean;
  isFailing: boolean;
}

export const noFaults: Faults = {
  ...{ isDown: false, isSilent: false, slowMs: 0, hasEndlessLists: false, withoutStreams: false, expiredToken: false },
  ...{ isThrottled: false, endsWatchesEarly: false, isFailing: false },
};

const latencyMs = 2;
const tooLargeAfterMs = 3_000;
/** Small, so that lists have several pages. */
const maxPageSize = 2;

const status = (
  code: number,
  reason: string,
  details: { causes?: string[]; retryAfterMs?: number } = {},
): ApiFailure => ({
  ...{ kind: 'status', code, reason, message: `${code} ${reason}`, causes: [] },
  ...details,
});
const expiredFailure = status(410, 'Expired');
const tooLargeFailure = status(504, 'Timeout', { causes: ['ResourceVersionTooLarge'], retryAfterMs: 1_000 });

export class SimulatedApiServer implements ApiServer {
  faults: Faults = { ...noFaults };
  /** Times and options of lists and watches. */
  readonly requests: {
    at: number;
    operation: 'list' | 'watch' | 'check';
    resource: string;
    version: string | undefined;
    initial: boolean;
  }[] = [];
  readonly pingTimes: number[] = [];
  connections = 0;
  /** The server responds that it does not know the kinds of other groups, as it does while starting. */
  forgetsKinds = false;
  readonly #clock: VirtualClock;
  readonly #eras: Era[] = [{ history: [], states: new Map() }];
  #version = 100;
  #compactedVersion = 0;
  #uidCount = 0;
  #definedResources = new Map<string, boolean>();
  #backup: { version: number; objects: Map<string, Objects>; defined: Map<string, boolean> } | undefined;
  #connection: Connection | undefined;
  #tokens = 0;
  readonly #snapshots = new Map<string, { version: number; rest: readonly KubernetesObject[] }>();

  constructor(clock: VirtualClock, resources: readonly ApiResource[]) {
    this.#clock = clock;
    for (const resource of resources) this.#definedResources.set(pathName(resource), true);
    const definitions = resources.find(({ plural }) => plural === 'customresourcedefinitions');
    for (const resource of resources)
      if (resource.group.includes('istio') && definitions !== undefined) this.put(definitions, definitionOf(resource));
  }

  // ---- its content

  get version(): number {
    return this.#version;
  }

  get era(): number {
    return this.#eras.length - 1;
  }

  objectsOf(resource: ApiResource): Objects {
    return this.#now(pathName(resource));
  }

  isDefined(resource: ApiResource): boolean {
    return this.#definedResources.get(pathName(resource)) === true;
  }

  /** The state of a kind at a version of an era; undefined if that version was never sent. */
  stateAt(resource: ApiResource, version: number, era: number): Objects | undefined {
    const states = this.#eras[era]?.states.get(pathName(resource));
    let latestState: Objects | undefined = new Map();
    for (const [at, state] of states ?? []) if (at <= version) latestState = state;
    return latestState;
  }

  /** Creates or updates. */
  put(resource: ApiResource, name: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const existingObject = this.#now(pathName(resource)).get(keyIn(resource, name));
    const uid = existingObject?.metadata.uid ?? `uid-${++this.#uidCount}`;
    this.#write(resource, existingObject === undefined ? 'ADDED' : 'MODIFIED', { name, uid }, fields);
  }

  delete(resource: ApiResource, name: string): void {
    const existingObject = this.#now(pathName(resource)).get(keyIn(resource, name));
    if (existingObject !== undefined)
      this.#write(resource, 'DELETED', existingObject.metadata as { name: string; uid: string }, {});
  }

  /** Defines the kind, like a CustomResourceDefinition. */
  defineResource(resource: ApiResource, definitions: ApiResource): void {
    if (this.#definedResources.get(pathName(resource)) === true) return;
    this.#definedResources.set(pathName(resource), true);
    this.put(definitions, definitionOf(resource));
  }

  undefineResource(resource: ApiResource, definitions: ApiResource): void {
    if (this.#definedResources.get(pathName(resource)) !== true) return;
    for (const { metadata } of [...this.#now(pathName(resource)).values()]) this.delete(resource, metadata.name);
    this.#definedResources.set(pathName(resource), false);
    this.delete(definitions, definitionOf(resource));
    for (const { watch } of this.#runningAll()) if (watch?.resource === pathName(resource)) watch.onEnd();
  }

  // ---- faults

  kill(): void {
    this.faults.isDown = true;
    this.#endConnections();
  }

  start(): void {
    this.faults.isDown = false;
  }

  /** Makes all connections dead without closing them. */
  dropBytes(): void {
    this.faults.isSilent = true;
    if (this.#connection !== undefined) this.#connection.isDead = true;
  }

  passBytes(): void {
    this.faults.isSilent = false;
  }

  /** Ends one of the watches. */
  endWatch(watchIndex: number, endKind: 'closed' | 'ended'): void {
    const watches = this.#runningAll().filter(({ watch }) => watch !== undefined);
    const runningWatch = watches[watchIndex % Math.max(1, watches.length)];
    if (runningWatch === undefined || runningWatch.connection.isDead) return;
    if (endKind === 'ended') runningWatch.watch!.onEnd();
    else runningWatch.fail({ kind: 'closed', message: 'the stream was reset' });
  }

  /** Compacts the history. */
  compact(): void {
    this.#compactedVersion = this.#version;
  }

  backUp(): void {
    const objects = new Map([...this.#definedResources.keys()].map((name) => [name, this.#now(name)] as const));
    this.#backup = { version: this.#version, objects, defined: new Map(this.#definedResources) };
  }

  /** Restores the backup, which lacks later changes, while the server is down. */
  restore(): void {
    if (this.#backup === undefined) return;
    const { version, objects, defined } = this.#backup;
    this.#definedResources = new Map(defined);
    const states = new Map([...objects].map(([name, state]) => [name, new Map([[0, state]])] as const));
    this.#eras.push({ history: [], states });
    this.#version = version;
    this.#compactedVersion = version;
    this.#snapshots.clear();
    this.#endConnections();
  }

  // ---- the port

  list(
    resource: ApiResource,
    options: ListOptions,
    signal: AbortSignal,
    onItem?: (object: KubernetesObject) => void,
  ): Promise<ObjectPage> {
    const name = pathName(resource);
    const operation = options.limit === 1 ? 'check' : 'list';
    this.requests.push({
      at: this.#clock.now(),
      operation,
      resource: name,
      version: options.resourceVersion,
      initial: true,
    });
    return this.#respond(signal, (resolve, runningCall) => {
      const refusal = this.#refusalOf(name) ?? this.#versionProblem(options.resourceVersion);
      if (refusal === tooLargeFailure) {
        this.#clock.setTimeout(() => runningCall.fail(tooLargeFailure), tooLargeAfterMs);
        return;
      }
      if (refusal !== undefined) return runningCall.fail(refusal);
      const page = this.#page(name, options);
      if (page === undefined) return runningCall.fail(expiredFailure);
      if (onItem === undefined) return resolve(page);
      for (const item of page.items) onItem(item);
      resolve({ ...page, items: [] });
    });
  }

  watch(
    resource: ApiResource,
    options: WatchOptions,
    onEvent: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Promise<WatchEnd> {
    const name = pathName(resource);
    const initial = options.sendInitialEvents === true;
    this.requests.push({
      at: this.#clock.now(),
      operation: 'watch',
      resource: name,
      version: options.resourceVersion,
      initial,
    });
    return this.#respond(
      signal,
      (resolve, runningCall) => {
        const refusal = this.#refusalOf(name);
        if (refusal !== undefined) return runningCall.fail(refusal);
        if (initial && this.faults.withoutStreams) return runningCall.fail(status(422, 'Invalid'));
        const watch = runningCall.watch!;
        if (initial) {
          if (this.#versionProblem(options.resourceVersion) === tooLargeFailure) {
            this.#clock.setTimeout(() => this.#endWithError(runningCall, resolve, tooLargeFailure), tooLargeAfterMs);
            return;
          }
          for (const object of this.#now(name).values()) watch.onEvent({ type: 'ADDED', object });
          if (this.faults.hasEndlessLists) return;
          watch.onEvent(bookmarkEvent(this.#version, true));
          watch.sentVersion = this.#version;
        } else {
          const from = Number(options.resourceVersion);
          // A watch needs only the versions after `from`.
          if (from + 1 < this.#compactedVersion) return this.#endWithError(runningCall, resolve, expiredFailure);
          // A watch from a future version is silent until the server reaches that version.
          watch.sentVersion = from;
          this.#deliver(watch);
        }
        if (this.faults.endsWatchesEarly) resolve({ events: watch.events, skipped: 0 });
        else
          this.#clock.setTimeout(() => resolve({ events: watch.events, skipped: 0 }), options.timeoutSeconds * 1_000);
      },
      (settle) => ({
        resource: name,
        sentVersion: Number.POSITIVE_INFINITY,
        events: 0,
        onEvent(event) {
          this.events++;
          onEvent(event);
        },
        onEnd: () => settle({ events: 0, skipped: 0 }),
      }),
    );
  }

  ping(signal: AbortSignal): Promise<number> {
    this.pingTimes.push(this.#clock.now());
    // The connection responds, not the request handlers.
    return this.#respond<number>(signal, (resolve) => resolve(1), undefined, true);
  }

  reconnect(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    for (const runningCall of [...(connection?.runningCalls ?? [])])
      runningCall.fail({ kind: 'closed', message: 'given up' });
  }

  request(): Promise<KubernetesObject> {
    return Promise.reject(new ApiError({ kind: 'invalid', message: 'nothing is written here' }));
  }

  close(): void {
    this.reconnect();
  }

  // ---- inside

  #now(name: string): Objects {
    return [...(this.#eras.at(-1)!.states.get(name)?.values() ?? [])].at(-1) ?? new Map();
  }

  #write(
    resource: ApiResource,
    type: HistoryEvent['type'],
    { name, uid }: { name: string; uid: string },
    fields: Readonly<Record<string, unknown>>,
  ): void {
    this.#version++;
    const object: KubernetesObject = {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: {
        name,
        ...(resource.namespaced && { namespace: 'default' }),
        uid,
        resourceVersion: String(this.#version),
      },
      ...fields,
    };
    const path = pathName(resource);
    const next = new Map(this.#now(path));
    if (type === 'DELETED') next.delete(keyIn(resource, name));
    else next.set(keyIn(resource, name), object);
    const { states, history } = this.#eras.at(-1)!;
    states.set(path, (states.get(path) ?? new Map()).set(this.#version, next));
    history.push({ version: this.#version, resource: path, type, object });
    for (const { watch, connection } of this.#runningAll()) {
      if (watch?.resource === path && !connection.isDead) this.#deliver(watch);
    }
  }

  #deliver(watch: OpenWatch): void {
    for (const { version, resource, type, object } of this.#eras.at(-1)!.history) {
      if (resource !== watch.resource || version <= watch.sentVersion) continue;
      watch.sentVersion = version;
      watch.onEvent({ type, object });
    }
  }

  /** A server does this for kinds without a change for a minute; here a test orders it. */
  sendBookmarks(): void {
    for (const { watch, connection } of this.#runningAll()) {
      if (watch === undefined || connection.isDead || watch.sentVersion > this.#version) continue;
      watch.sentVersion = this.#version;
      watch.onEvent(bookmarkEvent(this.#version, false));
    }
  }

  #page(name: string, { limit, continue: token, resourceVersion }: ListOptions): ObjectPage | undefined {
    const snapshot = token === undefined ? undefined : this.#snapshots.get(token);
    if (token !== undefined && (snapshot === undefined || snapshot.version < this.#compactedVersion)) return undefined;
    const version = snapshot?.version ?? this.#version;
    const all = snapshot?.rest ?? [...this.#now(name).values()];
    if (limit === undefined || resourceVersion !== undefined || all.length <= Math.min(limit, maxPageSize))
      return { items: all, resourceVersion: String(version) };
    const next = `token-${++this.#tokens}`;
    const size = Math.min(limit, maxPageSize);
    this.#snapshots.set(next, { version, rest: all.slice(size) });
    return { items: all.slice(0, size), resourceVersion: String(version), continue: next };
  }

  #refusalOf(name: string): ApiFailure | undefined {
    const { expiredToken, isThrottled, isFailing } = this.faults;
    if (expiredToken) return status(401, 'Unauthorized');
    if (this.#definedResources.get(name) !== true || (this.forgetsKinds && name.includes('istio')))
      return status(404, 'NotFound');
    if (isThrottled) return status(429, 'TooManyRequests', { retryAfterMs: 1_000 });
    return isFailing ? status(500, 'InternalError') : undefined;
  }

  #versionProblem(version: string | undefined): ApiFailure | undefined {
    return version !== undefined && Number(version) > this.#version ? tooLargeFailure : undefined;
  }

  #endWithError(runningCall: RunningCall, resolve: (end: WatchEnd) => void, failure: ApiFailure): void {
    if (!runningCall.connection.runningCalls.has(runningCall) || failure.kind !== 'status') return;
    const { code, reason, message, causes, retryAfterMs } = failure;
    const details = {
      causes: causes.map((cause) => ({ reason: cause })),
      ...(retryAfterMs !== undefined && { retryAfterSeconds: retryAfterMs / 1_000 }),
    };
    runningCall.watch!.onEvent({ type: 'ERROR', object: { code, reason, message, details } });
    resolve({ events: 1, skipped: 0 });
  }

  /** Responds to a current request. */
  #respond<Answer>(
    signal: AbortSignal,
    handle: (resolve: (value: Answer) => void, running: RunningCall) => void,
    watch?: (settle: (value: Answer) => void) => OpenWatch,
    isPing = false,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.faults.isDown) {
        this.#clock.setTimeout(() => reject(new ApiError({ kind: 'unreachable', message: 'refused' })), 1);
        return;
      }
      if (this.#connection === undefined) {
        this.connections++;
        this.#connection = { isDead: this.faults.isSilent, runningCalls: new Set() };
      }
      const connection = this.#connection;
      const end = (): boolean => connection.runningCalls.delete(runningCall);
      const settleOnce = (value: Answer): void => {
        if (end()) resolve(value);
      };
      const runningCall: RunningCall = {
        connection,
        fail: (failure) => {
          if (end()) reject(new ApiError(failure));
        },
        ...(watch !== undefined && { watch: watch(settleOnce) }),
      };
      connection.runningCalls.add(runningCall);
      signal.addEventListener('abort', () => runningCall.fail({ kind: 'aborted', message: 'nobody waits' }));
      const ms = latencyMs + (isPing ? 0 : this.faults.slowMs);
      this.#clock.setTimeout(() => {
        if (!connection.runningCalls.has(runningCall) || connection.isDead) return;
        handle(settleOnce, runningCall);
      }, ms);
    });
  }

  #runningAll(): RunningCall[] {
    return [...(this.#connection?.runningCalls ?? [])];
  }

  #endConnections(): void {
    const connection = this.#connection;
    // A client that waits on a dead connection is not notified.
    if (connection === undefined || connection.isDead) return;
    this.#connection = undefined;
    for (const runningCall of [...connection.runningCalls]) runningCall.fail({ kind: 'closed', message: 'reset' });
  }
}

function bookmarkEvent(version: number, endsInitial: boolean): WatchEvent {
  const annotations = endsInitial ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
  return { type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion: String(version), ...annotations } } };
}

const definitionOf = ({ plural, group }: ApiResource): string => `${plural}.${group}`;
const keyIn = ({ namespaced }: ApiResource, name: string): string => `${namespaced ? 'default' : ''}/${name}`;

function pathName(resource: ApiResource): string {
  return `${apiVersionOf(resource)}/${resource.plural}`;
}
