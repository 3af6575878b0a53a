/**
 * Which listeners a sidecar needs for outbound traffic, and what each matches (spec/discovery.md §8.4). Services are
 * added to addresses and ports, oldest first. Services of one address are merged here, and converted to Envoy's form
 * later.
 */
import type { ConfigKey, Origin } from '../../../model/config/config.ts';
import type { ApplicationProtocol } from '../../../model/fields/protocol.ts';
import type { ChainMatch, TcpChainRoute } from '../filter-chain.ts';
import { TakenMatches } from '../free-match.ts';

export interface TcpChainPlan extends TcpChainRoute {
  readonly match: ChainMatch;
  /** The most significant origin first. */
  readonly origins: readonly Origin[];
}

export interface ListenerPlan {
  readonly bind: string;
  readonly port: number;
  readonly bindToPort: boolean;
  /** The listener belongs to an egress listener with a port, so nothing of the catch-all listener is merged into it. */
  readonly locked: boolean;
  /** Set for HTTP. */
  http?: { readonly routeName: string; grpcWeb: boolean; readonly absoluteUrl?: boolean };
  readonly tcp: TcpChainPlan[];
  /** What the chains match. No two chains match the same. */
  readonly taken: TakenMatches;
  /** Protocols of the listener's TCP services. */
  readonly protocols: Set<ApplicationProtocol>;
  readonly dependsOn: ConfigKey[];
  /** Services of the HTTP chain. */
  readonly httpOrigins: Origin[];
}

export type ListenerPlace = Pick<ListenerPlan, 'bind' | 'port' | 'bindToPort' | 'locked'>;

export class OutboundPlan {
  readonly #listeners = new Map<string, ListenerPlan>();

  /** Listeners in the order of their creation. */
  get listeners(): readonly ListenerPlan[] {
    return [...this.#listeners.values()];
  }

  /** HTTP services of an address and port share one route configuration. */
  addHttp(
    place: ListenerPlace,
    http: NonNullable<ListenerPlan['http']>,
    dependsOn: readonly ConfigKey[],
    origins: readonly Origin[] = [],
  ): void {
    const plan = this.#at(place);
    if (plan === undefined || [...plan.protocols].some((protocol) => serverFirst.has(protocol))) return;
    plan.http ??= { ...http };
    plan.http.grpcWeb ||= http.grpcWeb;
    // A loop, because a port may have more services than a call can have arguments.
    for (const key of dependsOn) plan.dependsOn.push(key);
    for (const origin of origins) plan.httpOrigins.push(origin);
  }

  /**
   * Chains of older services take precedence over matches of newer ones. A protocol in which the server speaks first
   * shares its address with no other, because inspecting the client's bytes would delay it.
   */
  addTcp(place: ListenerPlace, chains: readonly TcpChainPlan[], dependsOn: readonly ConfigKey[]): void {
    const plan = this.#at(place);
    if (plan === undefined) return;
    for (const chain of chains) {
      if (isServerFirstConflict(plan, chain.protocol)) continue;
      const free = plan.taken.take(chain.match);
      if (free.length === 0) continue;
      plan.tcp.push(...free.map((match) => (match === chain.match ? chain : { ...chain, match })));
      plan.protocols.add(chain.protocol);
    }
    plan.dependsOn.push(...dependsOn);
  }

  #at(place: ListenerPlace): ListenerPlan | undefined {
    const key = `${place.bind}~${place.port}`;
    const found = this.#listeners.get(key);
    if (found?.locked && !place.locked) return undefined;
    if (found !== undefined) return found;
    const plan: ListenerPlan = {
      ...place,
      tcp: [],
      taken: new TakenMatches(),
      protocols: new Set(),
      dependsOn: [],
      httpOrigins: [],
    };
    this.#listeners.set(key, plan);
    return plan;
  }
}

const serverFirst: ReadonlySet<ApplicationProtocol> = new Set(['Mongo', 'MySQL']);

function isServerFirstConflict(plan: ListenerPlan, protocol: ApplicationProtocol): boolean {
  if (plan.http !== undefined && serverFirst.has(protocol)) return true;
  for (const other of plan.protocols) {
    if (other !== protocol && (serverFirst.has(other) || serverFirst.has(protocol))) return true;
  }
  return false;
}
