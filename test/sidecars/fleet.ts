/** Many sidecars, and the time until all of them have received a response. Times are those of {@link nowMs}. */
import type { ClientTls } from './http2-stream.ts';
import { encodeNode, loopbackOf, type SidecarIdentity } from './node.ts';
import { ResourceBatches } from './resource-batches.ts';
import { resourceBytes } from './resource-maps.ts';
import { type ReceivedResponse, Sidecar, type SidecarOptions } from './sidecar.ts';
import { type Kind, kinds, type XdsProtocol } from './xds-types.ts';

/** Milliseconds of the host's monotonic clock, which all of its processes share. */
export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

export interface FleetPlan extends Pick<SidecarOptions, 'resumes' | 'dialMs'> {
  readonly port: number;
  readonly protocol: XdsProtocol;
  readonly sidecars: number;
  /** Number of namespaces `ns-0`, `ns-1`, …; if 1 or absent, all sidecars are in `default`. */
  readonly namespaces?: number;
  /** Istio versions that the sidecars report, assigned in turn by namespace; default: all report the same. */
  readonly versions?: readonly string[];
  /** Namespace of gateways; if set, the sidecars are gateways. */
  readonly gatewaysOf?: string;
  /** First number; concurrent fleets have different numbers. Default 0. */
  readonly firstNumber?: number;
  /** Whether each sidecar connects from a separate loopback address. */
  readonly hasOwnAddresses?: boolean;
  /** Default: plaintext. */
  readonly tls?: ClientTls;
  /** Whether a sidecar that loses its stream reconnects like Envoy; otherwise that is a failure. */
  readonly reconnects?: boolean;
  /** Back-off between reconnections; default: that of Envoy. */
  readonly backOffMs?: { readonly first: number; readonly max: number };
  /** Namespace of all sidecars. */
  readonly namespace?: string;
}

/** Counts since the fleet was opened. */
export interface FleetCounts {
  readonly responses: Readonly<Record<Kind, number>>;
  readonly resources: Readonly<Record<Kind, number>>;
  /** Bytes of the messages including gRPC's five-byte prefix. */
  readonly messageBytes: number;
  /** Bytes of the resources of the first sidecar. */
  readonly resourceBytesOfOne: number;
  /** CPU time of this process since the fleet was created. */
  readonly cpuMs: number;
}

export interface FleetMark {
  readonly kind: Kind;
  /** Bytes in a response that identify the change. */
  readonly mark: string;
  /** Whether only sidecars in the namespace of number 0 receive the change; default: all. */
  readonly isOfFirstNamespace?: boolean;
}

/** Reconnections of sidecars that lost their streams. */
export interface FleetReturn {
  /** Times at which each sidecar had all resources again, sorted. */
  readonly fullAtMs: readonly number[];
  /** Number of opened streams. */
  readonly attempts: number;
  /** Number of ended streams by reason. */
  readonly reasons: Readonly<Record<string, number>>;
}

/** Delay between attempts: random, below a limit that doubles (Envoy's defaults for a gRPC stream of xDS). */
const envoyBackOffMs = { first: 500, max: 30_000 };

/** Delay until a stream that ended before it had all resources is opened again. */
const retryDelayMs = { least: 5, most: 500 };

export class Fleet {
  readonly #sidecars: Sidecar[];
  readonly #namespaces: number;
  readonly #counts = { responses: zero(), resources: zero() };
  readonly #cpuBefore = process.cpuUsage();
  #lastMessages = new Map<Kind, Buffer>();
  #resourceBytesOfOne = 0;
  readonly #reconnects: boolean;
  readonly #backOffMs: { readonly first: number; readonly max: number };
  /** Failed attempts since a sidecar had all resources. */
  readonly #tries = new Map<Sidecar, number>();
  #isClosed = false;
  #fullSidecars = new Set<Sidecar>();
  #onFull: ((atMs: number) => void) | undefined;
  #onFirst: ((atMs: number) => void) | undefined;
  #onLost: (reason: string) => void;
  #return:
    | { fullAtMs: number[]; attempts: number; reasons: Map<string, number>; left: Set<Sidecar>; done(): void }
    | undefined;
  #awaitedPush:
    | { readonly kind: Kind; readonly mark: Buffer; readonly left: Set<Sidecar>; done(atMs: number): void }
    | undefined;

  /** @param onLost called when a sidecar that had all resources loses its stream */
  constructor(plan: FleetPlan, onLost: (reason: string) => void) {
    const { port, protocol, sidecars, namespaces = 1, firstNumber = 0, hasOwnAddresses = false, tls } = plan;
    this.#namespaces = namespaces;
    this.#reconnects = plan.reconnects ?? false;
    this.#backOffMs = plan.backOffMs ?? envoyBackOffMs;
    const { resumes, dialMs } = plan;
    const batches = new ResourceBatches(protocol === 'delta');
    this.#onLost = onLost;
    this.#sidecars = Array.from(
      { length: sidecars },
      (_, index) =>
        new Sidecar({
          port,
          protocol,
          node: encodeNode(identityOf(firstNumber + index, plan)),
          ...(resumes !== undefined && { resumes }),
          ...(dialMs !== undefined && { dialMs }),
          ...(hasOwnAddresses && { localAddress: loopbackOf(firstNumber + index) }),
          ...(tls !== undefined && { tls }),
          batches,
          onResponse: (sidecar, response) => this.#note(sidecar, response),
          onFull: (sidecar) => this.#noteFull(sidecar),
          onEnd: (sidecar, reason) => this.#noteEnd(sidecar, reason),
        }),
    );
  }

  /** Opens all streams. @returns time at which the last sidecar had all resources */
  open(): Promise<number> {
    return new Promise((resolve) => {
      this.#onFull = resolve;
      for (const sidecar of this.#sidecars) sidecar.open();
    });
  }

  /** @returns time of the first response */
  first(): Promise<number> {
    return new Promise((resolve) => {
      this.#onFirst = resolve;
    });
  }

  /** @returns time at which the last sidecar had acknowledged a response with the mark; never resolves if one does not receive it */
  awaitMark({ kind, mark, isOfFirstNamespace = false }: FleetMark): Promise<number> {
    const notified = isOfFirstNamespace
      ? this.#sidecars.filter((_, number) => number % this.#namespaces === 0)
      : this.#sidecars;
    return new Promise((resolve) => {
      this.#awaitedPush = { kind, mark: Buffer.from(mark), left: new Set(notified), done: resolve };
    });
  }

  /** Must be called before the streams are lost. @returns reconnections after all sidecars have all resources again */
  awaitReturn(): Promise<FleetReturn> {
    const { promise, resolve } = Promise.withResolvers<FleetReturn>();
    const returnWait = {
      fullAtMs: [] as number[],
      attempts: 0,
      reasons: new Map<string, number>(),
      left: new Set(this.#sidecars),
      done: () => {
        const { fullAtMs, attempts, reasons } = returnWait;
        resolve({ fullAtMs, attempts, reasons: Object.fromEntries(reasons) });
      },
    };
    this.#return = returnWait;
    return promise;
  }

  /** Number of sidecars that have not acknowledged the awaited response, or have not reconnected. */
  get missing(): number {
    return this.#return?.left.size ?? this.#awaitedPush?.left.size ?? this.#sidecars.length - this.#fullSidecars.size;
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

  /** The latest response of each kind that the first sidecar received. */
  get lastMessages(): ReadonlyMap<Kind, Buffer> {
    return this.#lastMessages;
  }

  /** Number of resources of each kind that the first sidecar has. */
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
    const awaitedPush = this.#awaitedPush;
    if (awaitedPush?.kind !== kind || !awaitedPush.left.has(sidecar) || !resources.includes(awaitedPush.mark)) return;
    awaitedPush.left.delete(sidecar);
    if (awaitedPush.left.size > 0) return;
    this.#awaitedPush = undefined;
    awaitedPush.done(nowMs());
  }

  #noteFull(sidecar: Sidecar): void {
    this.#fullSidecars.add(sidecar);
    this.#tries.delete(sidecar);
    this.#noteReturned(sidecar);
    if (this.#fullSidecars.size < this.#sidecars.length) return;
    this.#onFull?.(nowMs());
    this.#onFull = undefined;
  }

  #noteEnd(sidecar: Sidecar, reason: string): void {
    if (this.#isClosed) return;
    if (this.#reconnects && this.#fullSidecars.has(sidecar)) this.#reconnect(sidecar, reason);
    else if (sidecar.isFull) this.#onLost(reason);
    else setTimeout(() => this.#isClosed || sidecar.open(), this.#retryAfterMs(reason));
  }

  #noteReturned(sidecar: Sidecar): void {
    const returnWait = this.#return;
    if (!returnWait?.left.delete(sidecar)) return;
    returnWait.fullAtMs.push(nowMs());
    if (returnWait.left.size > 0) return;
    this.#return = undefined;
    returnWait.done();
  }

  #reconnect(sidecar: Sidecar, reason: string): void {
    const tries = this.#tries.get(sidecar) ?? 0;
    this.#tries.set(sidecar, tries + 1);
    const { first, max } = this.#backOffMs;
    const ms = Math.random() * Math.min(max, first * 2 ** tries);
    setTimeout(() => {
      if (this.#isClosed) return;
      if (this.#return !== undefined) this.#return.attempts++;
      sidecar.open();
    }, ms);
    const reasons = this.#return?.reasons;
    reasons?.set(reason, (reasons.get(reason) ?? 0) + 1);
  }

  /** Retries immediately if no server listens, or later at random times if the server is overloaded. */
  #retryAfterMs(reason: string): number {
    return reason.includes('ECONNREFUSED')
      ? retryDelayMs.least
      : retryDelayMs.least + Math.random() * retryDelayMs.most;
  }
}

function identityOf(
  number: number,
  { namespaces = 1, versions = [], gatewaysOf, namespace: onlyNamespace }: FleetPlan,
): SidecarIdentity {
  const version = versions[Math.floor(number / namespaces) % versions.length];
  const namespace = gatewaysOf ?? onlyNamespace ?? (namespaces === 1 ? 'default' : `ns-${number % namespaces}`);
  return {
    number,
    namespace,
    ...(version !== undefined && { version }),
    ...(gatewaysOf !== undefined && { type: 'router' }),
  };
}

const zero = (): Record<Kind, number> => ({ CDS: 0, EDS: 0, LDS: 0, RDS: 0 });
