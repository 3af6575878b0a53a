/** Many sidecars, and the time that passes until all of them have something. Times are of {@link nowMs}. */
import { encodeNode, type SidecarIdentity } from './node.ts';
import { ResourceBatches } from './resource-batches.ts';
import { resourceBytes } from './resource-maps.ts';
import { type ReceivedResponse, Sidecar } from './sidecar.ts';
import { type Kind, kinds, type Protocol } from './xds-types.ts';

/** Milliseconds of the host's monotonic clock: the same in all of its processes. */
export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

export interface FleetPlan {
  readonly port: number;
  readonly protocol: Protocol;
  readonly sidecars: number;
  /** They are spread over so many, `ns-0` and so on; absent, or 1: all are in `default`. */
  readonly namespaces?: number;
  /** What they say that they are of Istio, in turns from namespace to namespace; absent: all the same. */
  readonly versions?: readonly string[];
  /** They are gateways, of this namespace. */
  readonly gatewaysOf?: string;
}

/** Since the fleet was opened. */
export interface FleetCounts {
  /** Responses. */
  readonly responses: Readonly<Record<Kind, number>>;
  readonly resources: Readonly<Record<Kind, number>>;
  /** Of the messages, with gRPC's five bytes before each. */
  readonly messageBytes: number;
  /** Of the resources themselves, of one sidecar: the first. */
  readonly resourceBytesOfOne: number;
  /** CPU time of the client's own process, since the fleet was made. */
  readonly cpuMs: number;
}

export interface FleetMark {
  readonly kind: Kind;
  /** Bytes that the change brings to the wire. */
  readonly mark: string;
  /** Only sidecars of the namespace of number 0 are told; absent: all. */
  readonly isOfFirstNamespace?: boolean;
}

/** A stream that ends before it has everything is opened again after at most so long. */
const retryDelayMs = { least: 5, most: 500 };

export class Fleet {
  readonly #sidecars: Sidecar[];
  readonly #namespaces: number;
  readonly #counts = { responses: zero(), resources: zero() };
  readonly #cpuBefore = process.cpuUsage();
  #lastMessages = new Map<Kind, Buffer>();
  #resourceBytesOfOne = 0;
  #isClosed = false;
  #full = new Set<Sidecar>();
  #onFull: ((atMs: number) => void) | undefined;
  #onFirst: ((atMs: number) => void) | undefined;
  #onLost: (reason: string) => void;
  #awaited:
    | { readonly kind: Kind; readonly mark: Buffer; readonly left: Set<Sidecar>; done(atMs: number): void }
    | undefined;

  /** @param onLost a sidecar that had everything lost its stream */
  constructor(plan: FleetPlan, onLost: (reason: string) => void) {
    const { port, protocol, sidecars, namespaces = 1 } = plan;
    this.#namespaces = namespaces;
    const batches = new ResourceBatches(protocol === 'delta');
    this.#onLost = onLost;
    this.#sidecars = Array.from(
      { length: sidecars },
      (_, number) =>
        new Sidecar({
          port,
          protocol,
          node: encodeNode(identityOf(number, plan)),
          batches,
          onResponse: (sidecar, response) => this.#note(sidecar, response),
          onFull: (sidecar) => this.#noteFull(sidecar),
          onEnd: (sidecar, reason) => this.#noteEnd(sidecar, reason),
        }),
    );
  }

  /** Opens all. @returns when the last one had everything */
  open(): Promise<number> {
    return new Promise((resolve) => {
      this.#onFull = resolve;
      for (const sidecar of this.#sidecars) sidecar.open();
    });
  }

  /** @returns when the first response came */
  first(): Promise<number> {
    return new Promise((resolve) => {
      this.#onFirst = resolve;
    });
  }

  /** @returns when the last sidecar had acknowledged a response with the mark; never, when one was not sent it */
  awaitMark({ kind, mark, isOfFirstNamespace = false }: FleetMark): Promise<number> {
    const told = isOfFirstNamespace
      ? this.#sidecars.filter((_, number) => number % this.#namespaces === 0)
      : this.#sidecars;
    return new Promise((resolve) => {
      this.#awaited = { kind, mark: Buffer.from(mark), left: new Set(told), done: resolve };
    });
  }

  /** How many have not acknowledged what is waited for. */
  get missing(): number {
    return this.#awaited?.left.size ?? this.#sidecars.length - this.#full.size;
  }

  counts(): FleetCounts {
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    return {
      responses: { ...this.#counts.responses },
      resources: { ...this.#counts.resources },
      messageBytes: this.#sidecars.reduce((sum, { messageBytes }) => sum + messageBytes, 0),
      resourceBytesOfOne: this.#resourceBytesOfOne,
      cpuMs: (user + system) / 1_000,
    };
  }

  /** The latest response of each kind that the first sidecar got. */
  get lastMessages(): ReadonlyMap<Kind, Buffer> {
    return this.#lastMessages;
  }

  /** What the first sidecar has: how many of each kind. */
  sizes(): Record<Kind, number> {
    return Object.fromEntries(kinds.map((kind) => [kind, this.#sidecars[0]!.resources(kind).size])) as Record<
      Kind,
      number
    >;
  }

  close(): void {
    this.#isClosed = true;
    for (const sidecar of this.#sidecars) sidecar.close();
  }

  #note(sidecar: Sidecar, { kind, batch, message, resources }: ReceivedResponse): void {
    this.#counts.responses[kind]++;
    this.#counts.resources[kind] += batch.size;
    this.#onFirst?.(nowMs());
    this.#onFirst = undefined;
    if (sidecar === this.#sidecars[0]) {
      this.#lastMessages.set(kind, message);
      this.#resourceBytesOfOne += resourceBytes(batch);
    }
    const awaited = this.#awaited;
    if (awaited?.kind !== kind || !awaited.left.has(sidecar) || !resources.includes(awaited.mark)) return;
    awaited.left.delete(sidecar);
    if (awaited.left.size > 0) return;
    this.#awaited = undefined;
    awaited.done(nowMs());
  }

  #noteFull(sidecar: Sidecar): void {
    this.#full.add(sidecar);
    if (this.#full.size < this.#sidecars.length) return;
    this.#onFull?.(nowMs());
    this.#onFull = undefined;
  }

  #noteEnd(sidecar: Sidecar, reason: string): void {
    if (this.#isClosed) return;
    if (sidecar.isFull) this.#onLost(reason);
    else setTimeout(() => this.#isClosed || sidecar.open(), this.#retryAfterMs(reason));
  }

  /** Nobody listens yet: at once; the server has too much to do: later, not all at the same time. */
  #retryAfterMs(reason: string): number {
    return reason.includes('ECONNREFUSED')
      ? retryDelayMs.least
      : retryDelayMs.least + Math.random() * retryDelayMs.most;
  }
}

function identityOf(number: number, { namespaces = 1, versions = [], gatewaysOf }: FleetPlan): SidecarIdentity {
  const version = versions[Math.floor(number / namespaces) % versions.length];
  const namespace = gatewaysOf ?? (namespaces === 1 ? 'default' : `ns-${number % namespaces}`);
  return {
    number,
    namespace,
    ...(version !== undefined && { version }),
    ...(gatewaysOf !== undefined && { type: 'router' }),
  };
}

const zero = (): Record<Kind, number> => ({ CDS: 0, EDS: 0, LDS: 0, RDS: 0 });
