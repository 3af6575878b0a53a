/** Who listens: proxies of each namespace and protocol, what happens to them, and what they should not have been sent. */
import { encodeNode } from '../sidecars/node.ts';
import { ResourceBatches } from '../sidecars/resource-batches.ts';
import { type ReceivedResponse, Sidecar } from '../sidecars/sidecar.ts';
import { kinds, type Protocol } from '../sidecars/xds-types.ts';
import { namespaces, wideNamespace } from './churn-mesh.ts';
import { differences, type Holdings } from './verdict.ts';

export interface ChurnProxy {
  readonly name: string;
  readonly number: number;
  readonly namespace: string;
  readonly protocol: Protocol;
  readonly sidecar: Sidecar;
  /** Since when only a change may make the server send it something; Infinity while that is not so. */
  quietSinceMs: number;
  /** What happens to it just now. */
  trouble: 'none' | 'away' | 'stalled';
  lastResponseMs: number;
  lastNewsMs: number;
  /** What happened to it last, for a reader of a failure. */
  lastTrouble: { readonly what: string; readonly atMs: number };
}

/** Counted over the whole run. */
export interface ChurnCounts {
  readonly responses: number;
  readonly redundant: number;
  readonly rejected: number;
  readonly left: number;
  readonly stalled: number;
  readonly lost: readonly string[];
  /** Nothing new, and nothing that explains it. */
  readonly unconcerned: readonly string[];
  /** New, but long after the change. */
  readonly late: readonly string[];
}

/** After it came, read on or answered with an error: how long the server may still be sending because of that. */
export const settlingMs = 2_500;
/** A change of a namespace explains what its proxies are sent for so long. */
export const explainedMs = 4_000;
/** An update that comes later than this after the last change of its namespace is one that nearly was missed. */
export const lateMs = 10_000;
/** The share of proxies that see all services. */
const wideShare = 0.2;

export class ChurnProxies {
  readonly all: readonly ChurnProxy[];
  readonly #port: number;
  readonly #lastChangeMs: (namespace: string) => number;
  readonly #batches = { sotw: new ResourceBatches(false), delta: new ResourceBatches(true) };
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #counts = {
    responses: 0,
    redundant: 0,
    rejected: 0,
    left: 0,
    stalled: 0,
    lost: [] as string[],
    unconcerned: [] as string[],
    late: [] as string[],
  };

  /** @param lastChangeMs when something of the namespace changed last */
  constructor(port: number, count: number, lastChangeMs: (namespace: string) => number) {
    this.#port = port;
    this.#lastChangeMs = lastChangeMs;
    const wide = Math.round(count * wideShare);
    this.all = Array.from({ length: count }, (_, number) =>
      this.#proxy(number, number < wide ? wideNamespace : namespaces[number % namespaces.length]!),
    );
  }

  get counts(): ChurnCounts {
    return this.#counts;
  }

  openAll(): void {
    for (const proxy of this.all) this.#open(proxy);
  }

  /** All are there, and nothing has come for a while. */
  isQuiet(ms: number): boolean {
    return this.all.every(
      ({ sidecar, trouble, lastResponseMs }) =>
        sidecar.isFull && trouble === 'none' && performance.now() - lastResponseMs > ms,
    );
  }

  leave(proxy: ChurnProxy, ms: number): void {
    this.#counts.left++;
    proxy.trouble = 'away';
    proxy.quietSinceMs = Number.POSITIVE_INFINITY;
    proxy.sidecar.close();
    this.#after(ms, () => this.#open(proxy));
  }

  stall(proxy: ChurnProxy, ms: number): void {
    this.#counts.stalled++;
    proxy.trouble = 'stalled';
    proxy.quietSinceMs = Number.POSITIVE_INFINITY;
    proxy.sidecar.stall();
    this.#after(ms, () => {
      proxy.trouble = 'none';
      proxy.quietSinceMs = performance.now() + settlingMs;
      note(proxy, 'it read on');
      proxy.sidecar.resume();
    });
  }

  reject(proxy: ChurnProxy): void {
    proxy.sidecar.rejectNext('churn: rejected on purpose');
  }

  /** One of each namespace and protocol. */
  samples(): ChurnProxy[] {
    const seen = new Set<string>();
    return this.all.filter(({ namespace, protocol }) => {
      const group = `${namespace} ${protocol}`;
      return !seen.has(group) && seen.add(group);
    });
  }

  /** Opens a proxy of the same name beside it and says what the two do not have in common. */
  async compareWithFresh(proxy: ChurnProxy, timeoutMs: number): Promise<string[]> {
    const fresh = this.#proxy(proxy.number, proxy.namespace, proxy.protocol);
    const deadline = performance.now() + timeoutMs;
    this.#open(fresh);
    while (!fresh.sidecar.isFull && performance.now() < deadline) await new Promise((done) => setTimeout(done, 5));
    const found = fresh.sidecar.isFull
      ? differences(holdingsOf(proxy.sidecar), holdingsOf(fresh.sidecar))
      : [`a fresh proxy has not everything after ${timeoutMs} ms`];
    fresh.trouble = 'away';
    fresh.sidecar.close();
    return found.map((line) => `${proxy.name}: ${line}`);
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const proxy of this.all) {
      proxy.trouble = 'away';
      proxy.sidecar.close();
    }
  }

  #proxy(number: number, namespace: string, protocol: Protocol = number % 3 === 0 ? 'sotw' : 'delta'): ChurnProxy {
    const sidecar = new Sidecar({
      port: this.#port,
      protocol,
      node: encodeNode({ number, namespace }),
      batches: this.#batches[protocol],
      onResponse: (_, response) => this.#note(proxy, response),
      onFull: () => {
        proxy.quietSinceMs = performance.now() + settlingMs;
      },
      onEnd: (_, reason) => this.#lost(proxy, reason),
    });
    const proxy: ChurnProxy = {
      name: `app-${number}.${namespace} (${protocol})`,
      number,
      namespace,
      protocol,
      sidecar,
      quietSinceMs: Number.POSITIVE_INFINITY,
      trouble: 'none',
      lastResponseMs: 0,
      lastNewsMs: 0,
      lastTrouble: { what: 'it was made', atMs: performance.now() },
    };
    return proxy;
  }

  #open(proxy: ChurnProxy): void {
    proxy.trouble = 'none';
    proxy.quietSinceMs = Number.POSITIVE_INFINITY;
    note(proxy, 'it came');
    proxy.sidecar.open();
  }

  #note(proxy: ChurnProxy, { kind, batch, removed, rejected, isNews }: ReceivedResponse): void {
    const now = performance.now();
    proxy.lastResponseMs = now;
    this.#counts.responses++;
    if (isNews) proxy.lastNewsMs = now;
    else this.#counts.redundant++;
    if (rejected) {
      this.#counts.rejected++;
      note(proxy, 'it rejected a response');
      proxy.quietSinceMs = now + settlingMs;
    }
    // A proxy that sees everything is concerned by every change.
    if (proxy.namespace === wideNamespace || now < proxy.quietSinceMs) return;
    const sinceMs = now - this.#lastChangeMs(proxy.namespace);
    // What it did not have was for it, and late; in a namespace that never changes nothing can be.
    const isLate = isNews && Number.isFinite(sinceMs);
    if (sinceMs < (isLate ? lateMs : explainedMs)) return;
    // A cluster that is new has its endpoints sent again: Envoy warms it with them.
    if (!isNews && Number.isFinite(sinceMs) && now - proxy.lastNewsMs < settlingMs) return;
    const what = [...batch.keys(), ...removed].slice(0, 3).join(', ');
    this.#counts[isLate ? 'late' : 'unconcerned'].push(
      `${proxy.name} was sent ${kind} (${batch.size} resources${isNews ? '' : ' that it had'}: ${what}), ` +
        (Number.isFinite(sinceMs) ? `${seconds(sinceMs)} after the last change` : 'though nothing ever changes') +
        ` in its namespace; ${proxy.lastTrouble.what} ${seconds(now - proxy.lastTrouble.atMs)} before`,
    );
  }

  #lost(proxy: ChurnProxy, reason: string): void {
    if (proxy.trouble === 'away') return;
    this.#counts.lost.push(`${proxy.name} lost its stream: ${reason}`);
    proxy.quietSinceMs = Number.POSITIVE_INFINITY;
    this.#after(200, () => this.#open(proxy));
  }

  #after(ms: number, deed: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      deed();
    }, ms);
    this.#timers.add(timer);
  }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

function note(proxy: ChurnProxy, what: string): void {
  proxy.lastTrouble = { what, atMs: performance.now() };
}

/** What a proxy has, of what it asks for. */
function holdingsOf(sidecar: Sidecar): Holdings {
  return Object.fromEntries(
    kinds.map((kind) => {
      const { names } = sidecar.names(kind);
      const all = [...sidecar.resources(kind).values()];
      const asked = kind === 'EDS' || kind === 'RDS' ? all.filter(({ name }) => names.has(name)) : all;
      return [kind, new Map(asked.map(({ name, digest }) => [name, digest]))];
    }),
  );
}
