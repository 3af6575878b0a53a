/**
 * Determines the outbound listeners of a sidecar and their matches. Services are added to addresses and ports, oldest first, and merged per address.
 */
import type { ConfigKey, Origin } from '../../../model/config/config.ts';
import type { ApplicationProtocol } from '../../../model/fields/protocol.ts';
import type { ChainMatch, TcpChainRoute } from '../filter-chain.ts';
import { UsedMatches } from '../free-match.ts';

export interface TcpChainPlan extends TcpChainRoute {
  readonly match: ChainMatch;
  /** Most significant origin first. */
  readonly origins: readonly Origin[];
}

export interface ListenerPlan {
  readonly bind: string;
  readonly port: number;
  readonly bindToPort: boolean;
  /** Set for an egress listener with a port. Services of the catch-all listener are not merged into it. */
  readonly isExclusive: boolean;
  http?: { readonly routeName: string; grpcWeb: boolean; readonly absoluteUrl?: boolean };
  readonly tcp: TcpChainPlan[];
  readonly takenMatches: UsedMatches;
  readonly protocols: Set<ApplicationProtocol>;
  readonly dependsOn: ConfigKey[];
  readonly httpOrigins: Origin[];
}

export type ListenerBinding = Pick<ListenerPlan, 'bind' | 'port' | 'bindToPort' | 'isExclusive'>;

export class OutboundPlan {
  readonly #listeners = new Map<string, ListenerPlan>();

  get listeners(): readonly ListenerPlan[] {
    return [...this.#listeners.values()];
  }

  addHttp(
    listenerBinding: ListenerBinding,
    http: NonNullable<ListenerPlan['http']>,
    dependsOn: readonly ConfigKey[],
    origins: readonly Origin[] = [],
  ): void {
    const plan = this.#listenerPlanAt(listenerBinding);
    if (plan === undefined || [...plan.protocols].some((protocol) => serverFirst.has(protocol))) return;
    plan.http ??= { ...http };
    plan.http.grpcWeb ||= http.grpcWeb;
    // A loop, because a spread argument fails for very many services.
    for (const key of dependsOn) plan.dependsOn.push(key);
    for (const origin of origins) plan.httpOrigins.push(origin);
  }

  /**
   * Adds chains after those of older services, which have priority. A server-first protocol must be alone on its address, because inspecting the
   * client's bytes would delay it.
   */
  addTcp(listenerBinding: ListenerBinding, chains: readonly TcpChainPlan[], dependsOn: readonly ConfigKey[]): void {
    const plan = this.#listenerPlanAt(listenerBinding);
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

  #listenerPlanAt(listenerBinding: ListenerBinding): ListenerPlan | undefined {
    const key = `${listenerBinding.bind}~${listenerBinding.port}`;
    const existingPlan = this.#listeners.get(key);
    if (existingPlan?.isExclusive && !listenerBinding.isExclusive) return undefined;
    if (existingPlan !== undefined) return existingPlan;
    const plan: ListenerPlan = {
      ...listenerBinding,
      tcp: [],
      takenMatches: new UsedMatches(),
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
  for (const otherProtocol of plan.protocols) {
    if (otherProtocol !== protocol && (serverFirst.has(otherProtocol) || serverFirst.has(protocol))) return true;
  }
  return false;
}
