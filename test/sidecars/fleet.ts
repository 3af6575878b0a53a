/** Many sidecars, and the time that passes until all of them have something. Times are of {@link nowMs}. */
import type { ClientTls } from './http2-stream.ts';
import { encodeNode, loopbackOf, type SidecarIdentity } from './node.ts';
import { ResourceBatches } from './resource-batches.ts';
import { resourceBytes } from './resource-maps.ts';
import { type ReceivedResponse, Sidecar, type SidecarOptions } from './sidecar.ts';
import { type Kind, kinds, type Protocol } from './xds-types.ts';

/** Milliseconds of the host's monotonic clock: the same in all of its processes. */
export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

export interface FleetPlan extends Pick<SidecarOptions, 'resumes' | 'dialMs'> {
  readonly port: number;
  readonly protocol: Protocol;
  readonly sidecars: number;
  /** They are spread over so many, `ns-0` and so on; absent, or 1: all are in `default`. */
  readonly namespaces?: number;
  /** What they say that they are of Istio, in turns from namespace to namespace; absent: all the same. */
  readonly versions?: readonly string[];
  /** They are gateways, of this namespace. */
  readonly gatewaysOf?: string;
  /** Where their numbers begin: fleets beside each other have different ones. Default 0. */
  readonly firstNumber?: number;
  /** Each comes from an address of its own, on loopback. */
  readonly hasOwnAddresses?: boolean;
  /** Absent: plaintext. */
  readonly tls?: ClientTls;
  /** One that had everything and lost its stream comes back, as Envoy does; else that is a failure. */
  readonly comesBack?: boolean;
  /** Back-off of one that comes back; default: Envoy's. */
  readonly backOffMs?: { readonly first: number; readonly longest: number };
  /** All are of this one. */
  readonly namespace?: string;
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

/** Of sidecars that lost their streams, when each had everything again. */
export interface FleetReturn {
  /** In order. */
  readonly fullAtMs: readonly number[];
  /** Streams that were opened for it. */
  readonly attempts: number;
  /** How often each reason ended a stream meanwhile. */
  readonly reasons: Readonly<Record<string, number>>;
}

/** From one try to the next: at random below a limit that doubles (Envoy's defaults for a gRPC stream of xDS). */
const envoyBackOffMs = { first: 500, longest: 30_000 };

/** A stream that ends before it has everything is opened again after at most so long. */
const retryDelayMs = { least: 5, most: 500 };

export class Fleet {
  readonly #sidecars: Sidecar[];
  readonly #namespaces: number;
  readonly #counts = { responses: zero(), resources: zero() };
  readonly #cpuBefore = process.cpuUsage();
  #lastMessages = new Map<Kind, Buffer>();
  #resourceBytesOfOne = 0;
  readonly #comesBack: boolean;
  readonly #backOffMs: { readonly first: number; readonly longest: number };
  /** Tries since a sidecar had everything. */
  readonly #tries = new Map<Sidecar, number>();
  #isClosed = false;
  #full = new Set<Sidecar>();
  #onFull: ((atMs: number) => void) | undefined;
  #onFirst: ((atMs: number) => void) | undefined;
  #onLost: (reason: string) => void;
  #return:
    | { fullAtMs: number[]; attempts: number; reasons: Map<string, number>; left: Set<Sidecar>; done(): void }
    | undefined;
  #awaited:
    | { readonly kind: Kind; readonly mark: Buffer; readonly left: Set<Sidecar>; done(atMs: number): void }
    | undefined;

  /** @param onLost a sidecar that had everything lost its stream */
  constructor(plan: FleetPlan, onLost: (reason: string) => void) {
    const { port, protocol, sidecars, namespaces = 1, firstNumber = 0, hasOwnAddresses = false, tls } = plan;
    this.#namespaces = namespaces;
    this.#comesBack = plan.comesBack ?? false;
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

  /** To be called before they lose their streams. @returns when all have come back and have everything */
  awaitReturn(): Promise<FleetReturn> {
    const { promise, resolve } = Promise.withResolvers<FleetReturn>();
    const returning = {
      fullAtMs: [] as number[],
      attempts: 0,
      reasons: new Map<string, number>(),
      left: new Set(this.#sidecars),
      done: () => {
        const { fullAtMs, attempts, reasons } = returning;
        resolve({ fullAtMs, attempts, reasons: Object.fromEntries(reasons) });
      },
    };
    this.#return = returning;
    return promise;
  }

  /** How many have not acknowledged what is waited for, or are not back. */
  get missing(): number {
    return this.#return?.left.size ?? this.#awaited?.left.size ?? this.#sidecars.length - this.#full.size;
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
    this.#tries.delete(sidecar);
    this.#noteReturned(sidecar);
    if (this.#full.size < this.#sidecars.length) return;
    this.#onFull?.(nowMs());
    this.#onFull = undefined;
  }

  #noteEnd(sidecar: Sidecar, reason: string): void {
    if (this.#isClosed) return;
    if (this.#comesBack && this.#full.has(sidecar)) this.#comeBack(sidecar, reason);
    else if (sidecar.isFull) this.#onLost(reason);
    else setTimeout(() => this.#isClosed || sidecar.open(), this.#retryAfterMs(reason));
  }

  #noteReturned(sidecar: Sidecar): void {
    const returning = this.#return;
    if (!returning?.left.delete(sidecar)) return;
    returning.fullAtMs.push(nowMs());
    if (returning.left.size > 0) return;
    this.#return = undefined;
    returning.done();
  }

  #comeBack(sidecar: Sidecar, reason: string): void {
    const tries = this.#tries.get(sidecar) ?? 0;
    this.#tries.set(sidecar, tries + 1);
    const { first, longest } = this.#backOffMs;
    const ms = Math.random() * Math.min(longest, first * 2 ** tries);
    setTimeout(() => {
      if (this.#isClosed) return;
      if (this.#return !== undefined) this.#return.attempts++;
      sidecar.open();
    }, ms);
    const reasons = this.#return?.reasons;
    reasons?.set(reason, (reasons.get(reason) ?? 0) + 1);
  }

  /** Nobody listens yet: at once; the server has too much to do: later, not all at the same time. */
  #retryAfterMs(reason: string): number {
    return reason.includes('ECONNREFUSED')
      ? retryDelayMs.least
      : retryDelayMs.least + Math.random() * retryDelayMs.most;
  }
}

function identityOf(
  number: number,
  { namespaces = 1, versions = [], gatewaysOf, namespace: only }: FleetPlan,
): SidecarIdentity {
  const version = versions[Math.floor(number / namespaces) % versions.length];
  const namespace = gatewaysOf ?? only ?? (namespaces === 1 ? 'default' : `ns-${number % namespaces}`);
  return {
    number,
    namespace,
    ...(version !== undefined && { version }),
    ...(gatewaysOf !== undefined && { type: 'router' }),
  };
}

const zero = (): Record<Kind, number> => ({ CDS: 0, EDS: 0, LDS: 0, RDS: 0 });
