/**
 * Determines the outbound listeners of a sidecar and their matches. Services are added to addresses and ports, oldest first, and merged per address.
 */
import type { ConfigKey, Origin } from '../../../model/config/config.ts';
import type { ApplicationProtocol } from '../../../model/fields/protocol.ts';
import type { ChainMatch, TcpChainRoute } from '../filter-chain.ts';
import { TakenMatches } from '../free-match.ts';

export interface TcpChainPlan extends TcpChainRoute {
  readonly match: ChainMatch;
  /** Most significant origin first. */
  readonly origins: readonly Origin[];
}

export interface ListenerPlan {
  readonly bind: string;
  readonly port: number;
  readonly bindToPort: boolean;
  /** Set for an egress listener with a port, into which services of the catch-all listener are not merged. */
  readonly isExclusive: boolean;
  http?: { readonly routeName: string; grpcWeb: boolean; readonly absoluteUrl?: boolean };
  readonly tcp: TcpChainPlan[];
  readonly takenMatches: TakenMatches;
  readonly protocols: Set<ApplicationProtocol>;
  readonly dependsOn: ConfigKey[];
  readonly httpOrigins: Origin[];
}

export type ListenerPlace = Pick<ListenerPlan, 'bind' | 'port' | 'bindToPort' | 'isExclusive'>;

export class OutboundPlan {
  readonly #listeners = new Map<string, ListenerPlan>();

  get listeners(): readonly ListenerPlan[] {
    return [...this.#listeners.values()];
  }

  addHttp(
    listenerPlace: ListenerPlace,
    http: NonNullable<ListenerPlan['http']>,
    dependsOn: readonly ConfigKey[],
    origins: readonly Origin[] = [],
  ): void {
    const plan = this.#planAt(listenerPlace);
    if (plan === undefined || [...plan.protocols].some((protocol) => serverFirst.has(protocol))) return;
    plan.http ??= { ...http };
    plan.http.grpcWeb ||= http.grpcWeb;
    // A spread argument would fail, because the number of services may exceed the limit of arguments.
    for (const key of dependsOn) plan.dependsOn.push(key);
    for (const origin of origins) plan.httpOrigins.push(origin);
  }

  /**
   * Adds chains after those of older services, which have priority. A server-first protocol must be alone on its address, because inspecting the
   * client's bytes would delay it.
   */
  addTcp(listenerPlace: ListenerPlace, chains: readonly TcpChainPlan[], dependsOn: readonly ConfigKey[]): void {
    const plan = this.#planAt(listenerPlace);
    if (plan === undefined) return;
    for (const chain of chains) {
      if (isServerFirstConflict(plan, chain.protocol)) continue;
      const freeMatches = plan.takenMatches.reserve(chain.match);
      if (freeMatches.length === 0) continue;
      plan.tcp.push(...freeMatches.map((match) => (match === chain.match ? chain : { ...chain, match })));
      plan.protocols.add(chain.protocol);
    }
    plan.dependsOn.push(...dependsOn);
  }

  #planAt(listenerPlace: ListenerPlace): ListenerPlan | undefined {
    const key = `${listenerPlace.bind}~${listenerPlace.port}`;
    const existingPlan = this.#listeners.get(key);
    if (existingPlan?.isExclusive && !listenerPlace.isExclusive) return undefined;
    if (existingPlan !== undefined) return existingPlan;
    const plan: ListenerPlan = {
      ...listenerPlace,
      tcp: [],
      takenMatches: new TakenMatches(),
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
