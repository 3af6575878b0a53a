/**
 * Where Envoy's admin interface is. All epochs of one base id share a port: a child takes it over from its parent. Two
 * base ids cannot share one, so the spare base id has a port of its own.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { type AdminClient, createAdminClient } from './admin-client.ts';

export interface AdminInterfacesOptions {
  readonly host: string;
  /** Of the first base id. */
  readonly port: number;
  /** Of the spare base id; 0: a free one, chosen when an Envoy needs it. */
  readonly sparePort: number;
  /** Where a free port is looked for. Default: below those that outgoing connections get. */
  readonly freePorts?: PortRange;
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

/** Where they are, for who asks an Envoy something: a reader changes nothing. */
export interface AdminDirectory {
  /** The admin interface that counts before any other is named. */
  readonly first: AdminClient;
  /** @throws Error for the spare base id before its first epoch was prepared: a mistake of the caller's */
  of(baseId: number): AdminClient;
}

/**
 * A registry, and no fact in events: which admin port belongs to which epoch follows from its base id, which every order
 * carries. What may change is one port, the spare one's, and one effect changes it, that which prepares an epoch: before there
 * is a process that anybody could ask. In events the port would be in the answer to the preparation, in the context of the
 * epoch, the supervisor and the status actor, and in the input of seven effects: fifteen places that say what one knows.
 * All others are given an `AdminDirectory`.
 */
export class AdminInterfaces implements AdminDirectory {
  readonly #options: AdminInterfacesOptions;
  readonly #first: AdminClient;
  #spare: AdminClient | undefined;
  #spareBaseId: number | undefined;

  constructor(options: AdminInterfacesOptions) {
    this.#options = options;
    this.#first = createAdminClient(options.host, options.port);
  }

  /** Says which base id is the spare one, as soon as it is claimed; without one, every base id is the first. */
  spareIs(baseId: number | undefined): void {
    this.#spareBaseId = baseId;
  }

  isSpare(baseId: number): boolean {
    return baseId === this.#spareBaseId;
  }

  /** Of the spare base id, once it is known. */
  get sparePort(): number | undefined {
    return this.#spare?.port;
  }

  /** The port that an Envoy of the spare base id has from an agent before this one. */
  spareHas(port: number): void {
    this.#spare = createAdminClient(this.#options.host, port);
  }

  get first(): AdminClient {
    return this.#first;
  }

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
