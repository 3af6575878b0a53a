/** The virtual services of a listener by the hosts whose requests they route. */
import { onceFor, onceForPair } from '../../../model/collections/once-for.ts';
import { setBounded } from '../../../model/collections/set-bounded.ts';
import { mostSpecific } from '../../../model/fields/hostname.ts';
import type { HttpMatchRequest, HttpRoute } from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { usedDestinations } from '../translate/action.ts';
import { appliesTo } from '../translate/match.ts';
import type { ServiceGroup } from './service-groups.ts';

export type ByHost = ReadonlyMap<string, ResolvedVirtualService>;

/** The virtual services that have a route for a client, by host. */
export interface ClientRules {
  /** All hosts of which any has one, for this client or another. */
  readonly hosts: Iterable<string>;
  /** Which port a request is sent to changes nothing. */
  readonly sameAtAllPorts: boolean;
  /** The same map for clients and ports that the same virtual services have a route for. */
  at(port: number): ByHost;
}

/**
 * Of several of one host the first that has a route for the client holds, the others are ignored (§8.5): one that has none is
 * passed over, so that requests are not left without a route because of what is written for somebody else.
 */
export function clientRules(services: readonly ResolvedVirtualService[], shape: ProxyShape): ClientRules {
  const { all, conditional, anyPort } = rulesOf(services);
  const byPort = new Map<number, ByHost>();
  const at = (port: number): ByHost => {
    const known = byPort.get(port);
    if (known !== undefined) return known;
    const made = conditional.length === 0 ? all : held(services, shape, port);
    byPort.set(port, made);
    return made;
  };
  return { hosts: all.keys(), sameAtAllPorts: !anyPort, at };
}

/** For each of the groups, in their order, the virtual service that routes what is sent to it. */
export function virtualServicesOver(
  groups: readonly ServiceGroup[],
  rules: ClientRules,
  listenerPort: number,
): readonly (ResolvedVirtualService | undefined)[] {
  if (listenerPort !== 0 || rules.sameAtAllPorts) return allOver(groups, rules.at(listenerPort));
  return groups.map((group) => over(group, rules.at(group.port.number)));
}

interface Rules {
  readonly all: ByHost;
  /** Those that have a route for some clients, or some ports. */
  readonly conditional: readonly ResolvedVirtualService[];
  /** Any of these looks at the port. */
  readonly anyPort: boolean;
  /** By which of the conditional ones have no route. */
  readonly without: Map<string, ByHost>;
}

const rulesOf = onceFor((services: readonly ResolvedVirtualService[]): Rules => {
  const conditional = services.filter((service) => !facts(service).forAll);
  const anyPort = conditional.some((service) => facts(service).matches.some(({ port }) => port !== undefined));
  return { all: firstByHost(services, noneWithout), conditional, anyPort, without: new Map() };
});

const noneWithout: ReadonlySet<ResolvedVirtualService> = new Set();

/** Few virtual services ask who the client is, and most clients get the same answers. */
const mostAnswers = 64;

function held(services: readonly ResolvedVirtualService[], shape: ProxyShape, port: number): ByHost {
  const { all, conditional, without } = rulesOf(services);
  const context = { shape, gateway: 'mesh', listenerPort: port };
  const places = conditional.flatMap((service, place) =>
    facts(service).matches.some((match) => appliesTo(match, context)) ? [] : [place],
  );
  if (places.length === 0) return all;
  const key = places.join();
  let byHost = without.get(key);
  if (byHost === undefined) {
    byHost = firstByHost(services, new Set(places.map((place) => conditional[place]!)));
    setBounded(without, key, byHost, mostAnswers);
  }
  return byHost;
}

function firstByHost(
  services: readonly ResolvedVirtualService[],
  without: ReadonlySet<ResolvedVirtualService>,
): ByHost {
  const byHost = new Map<string, ResolvedVirtualService>();
  for (const service of services) {
    if (without.has(service) || facts(service).matches.length === 0) continue;
    for (const host of service.config.spec.hosts) if (!byHost.has(host)) byHost.set(host, service);
  }
  return byHost;
}

interface Facts {
  /** Of all its routes that do something. */
  readonly matches: readonly HttpMatchRequest[];
  /** One of them holds whoever the client is. */
  readonly forAll: boolean;
}

const everything: readonly HttpMatchRequest[] = [{}];

const facts = onceFor(({ config }: ResolvedVirtualService): Facts => {
  const matches = (config.spec.http ?? [])
    .filter(doesSomething)
    .flatMap(({ match }) => (match?.length ? match : everything));
  return { matches, forAll: matches.length === 0 || matches.some(isForAll) };
});

function doesSomething(http: HttpRoute): boolean {
  return http.redirect !== undefined || http.directResponse !== undefined || usedDestinations(http).length > 0;
}

function isForAll({ never, port, sourceLabels, sourceNamespace, gateways }: HttpMatchRequest): boolean {
  const asksNothing = Object.keys(sourceLabels ?? {}).length === 0 && sourceNamespace === undefined;
  return !never && port === undefined && asksNothing && (!gateways?.length || gateways.includes('mesh'));
}

const allOver = onceForPair(
  (groups: readonly ServiceGroup[], byHost: ByHost): readonly (ResolvedVirtualService | undefined)[] =>
    groups.map((group) => over(group, byHost)),
);

function over({ service: { hostname } }: ServiceGroup, byHost: ByHost): ResolvedVirtualService | undefined {
  const exact = byHost.get(hostname);
  if (exact !== undefined) return exact;
  const host = mostSpecific(hostname, byHost);
  return host === undefined ? undefined : byHost.get(host);
}
