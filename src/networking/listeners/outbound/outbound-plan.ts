/**
 * Which listeners a sidecar needs for its outbound traffic, and what each must tell apart (spec/discovery.md §8.4).
 * Services are laid on addresses and ports one by one, oldest first; what meets on one address is merged here, and
 * only then made into Envoy's form.
 */
import type { ConfigKey, Origin } from '../../../model/config/config.ts';
import type { ApplicationProtocol } from '../../../model/fields/protocol.ts';
import type { ChainMatch, TcpRoute } from '../filter-chain.ts';
import { TakenMatches } from '../free-match.ts';

export interface TcpChainPlan extends TcpRoute {
  readonly match: ChainMatch;
  /** What decided most comes first. */
  readonly origins: readonly Origin[];
}

export interface ListenerPlan {
  readonly bind: string;
  readonly port: number;
  readonly bindToPort: boolean;
  /** The listener is of an egress listener with a port: nothing of the catch-all listener is merged into it. */
  readonly locked: boolean;
  /** Set when it speaks HTTP. */
  http?: { readonly routeName: string; grpcWeb: boolean; readonly absoluteUrl?: boolean };
  readonly tcp: TcpChainPlan[];
  /** What the chains match: no two match the same. */
  readonly taken: TakenMatches;
  /** Protocols of the TCP services on it. */
  readonly protocols: Set<ApplicationProtocol>;
  readonly dependsOn: ConfigKey[];
  /** The services whose requests the HTTP chain takes. */
  readonly httpOrigins: Origin[];
}

export type ListenerPlace = Pick<ListenerPlan, 'bind' | 'port' | 'bindToPort' | 'locked'>;

export class OutboundPlan {
  readonly #listeners = new Map<string, ListenerPlan>();

  /** The listeners in the order in which they were first asked for. */
  get listeners(): readonly ListenerPlan[] {
    return [...this.#listeners.values()];
  }

  /** HTTP services of a place share one route configuration. */
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
    // A port may have more services than a call takes arguments.
    for (const key of dependsOn) plan.dependsOn.push(key);
    for (const origin of origins) plan.httpOrigins.push(origin);
  }

  /**
   * Chains of an older service stay; of a newer one's, what they match is matched no more.
   * Protocols in which the server speaks first share a place with nothing else: looking at the client's bytes would
   * stall them.
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
