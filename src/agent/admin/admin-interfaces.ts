/**
 * Where Envoy's admin interface is. All epochs of one base id share a port: a child takes it over from its parent. Two
 * base ids cannot share one, so the spare base id has a port of its own.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Logger } from '../../runtime/log.ts';
import { type AdminClient, createAdminClient } from './admin-client.ts';

export interface AdminInterfacesOptions {
  readonly host: string;
  /** Of the first base id. */
  readonly port: number;
  /** Of the spare base id; 0: a free one, chosen when an Envoy needs it. */
  readonly sparePort: number;
  /** Where a free port is looked for. Default: below those that outgoing connections get. */
  readonly freePorts?: PortRange;
  readonly log: Logger;
}

/** From the first to the one before `end`. */
export interface PortRange {
  readonly first: number;
  readonly end: number;
}

const attempts = 100;
/** Below lie the ports that Istio's programs are known by, and those of well-known services. */
const lowestSparePort = 16_000;
const usualFirstOutgoingPort = 32_768;

export class AdminInterfaces {
  readonly #options: AdminInterfacesOptions;
  readonly #first: AdminClient;
  #spare: AdminClient | undefined;
  #spareBaseId: number | undefined;
  #told = false;

  constructor(options: AdminInterfacesOptions) {
    this.#options = options;
    this.#first = createAdminClient(options.host, options.port);
  }

  /** Says which base id is the spare one; without one, every base id is the first. */
  spareIs(baseId: number | undefined): void {
    this.#spareBaseId = baseId;
  }

  isSpare(baseId: number): boolean {
    return baseId === this.#spareBaseId;
  }

  /** The admin interface that counts before any other is named. */
  get first(): AdminClient {
    return this.#first;
  }

  /** @throws Error for the spare base id before its first epoch was prepared: a mistake of the caller's */
  of(baseId: number): AdminClient {
    if (!this.isSpare(baseId)) return this.#first;
    if (this.#spare === undefined) throw new Error(`no Envoy of base id ${baseId} has been prepared`);
    return this.#spare;
  }

  /**
   * The port that an epoch's bootstrap names. For epoch 0 of the spare base id it is chosen anew: somebody may have taken
   * the one of an earlier time.
   */
  async portFor({ epoch, baseId }: { readonly epoch: number; readonly baseId: number }): Promise<number> {
    if (this.isSpare(baseId) && (epoch === 0 || this.#spare === undefined)) {
      const { host, sparePort, freePorts = quietPorts() } = this.#options;
      this.#spare = createAdminClient(host, sparePort === 0 ? await freePort(host, freePorts) : sparePort);
    }
    return this.of(baseId).port;
  }

  /** Tells people where the admin interface has moved to, once for each move. */
  tell(baseId: number): void {
    if (this.isSpare(baseId) === this.#told) return;
    this.#told = this.isSpare(baseId);
    this.#options.log.info(`Envoy's admin interface is at ${this.of(baseId).address} now`, {
      baseId,
      spare: this.#told,
    });
  }
}

async function freePort(host: string, { first, end }: PortRange): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port = first + Math.floor(Math.random() * (end - first));
    if (await isFree(host, port)) return port;
  }
  throw new Error(
    `no free port for Envoy's admin interface from ${first} to ${end - 1}: name one with --spareAdminPort`,
  );
}

/** No outgoing connection takes one of these while it moves from a parent to its child. */
function quietPorts(): PortRange {
  return { first: lowestSparePort, end: Math.max(lowestSparePort + 1, firstOutgoingPort()) };
}

function firstOutgoingPort(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
  } catch {
    return usualFirstOutgoingPort;
  }
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
