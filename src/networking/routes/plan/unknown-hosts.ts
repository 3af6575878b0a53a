/** Hosts of virtual services that no service has as its name. */
import {
  coveringKeys,
  isHostWithin,
  isPartialWildcard,
  isWildcard,
  widerHosts,
} from '../../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { SidecarScope } from '../../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../../model/services/service.ts';
import { isAlias, serviceBehind } from '../../../model/services/service-alias.ts';
import type { ServiceGroup } from './service-groups.ts';
import type { RouteSelection } from './sidecar-virtual-hosts.ts';
import type { ByHost, ClientRules } from './virtual-services-by-host.ts';

/** Host names that no registry knows are served on this port alone. */
const portOfUnknownHosts = 80;

export interface UnknownHost {
  readonly hostname: string;
  readonly port: number;
  readonly over: ResolvedVirtualService;
}

interface UnknownHosts {
  readonly services: readonly Service[];
  readonly known: readonly Service[];
  readonly hosts: readonly UnknownHost[];
}

const unknownOf = new WeakMap<readonly ServiceGroup[], WeakMap<ByHost, UnknownHosts>>();

/** The virtual services' hosts that no service has as its name. Namespaces that see the same share the list. */
export function unknownHosts(
  selection: RouteSelection,
  groups: readonly ServiceGroup[],
  rules: ClientRules,
  scope: SidecarScope,
): readonly UnknownHost[] {
  if (selection.host !== undefined) return [];
  const make = (): readonly UnknownHost[] => {
    const portOf = portOfUnknown(selection, groups, scope);
    return [...rules.hosts].flatMap((hostname) => {
      const port = portOf(hostname);
      const over = port === undefined ? undefined : rules.at(port).get(hostname);
      return port === undefined || over === undefined ? [] : [{ hostname, port, over }];
    });
  };
  // Of one port all virtual services are those of that port.
  if (selection.port === undefined && !rules.sameAtAllPorts) return make();
  const byHost = rules.at(selection.listenerPort);
  const ofGroups = unknownOf.get(groups) ?? new WeakMap<ByHost, UnknownHosts>();
  unknownOf.set(groups, ofGroups);
  const { services } = selection.egress;
  let known = ofGroups.get(byHost);
  if (known?.services !== services || known.known !== scope.services) {
    known = { services, known: scope.services, hosts: make() };
    ofGroups.set(byHost, known);
  }
  return known.hosts;
}

/**
 * The port on which a virtual service's host is served that no service has as its name: a name under a wildcard
 * service has that one's port; a name that no service covers has port 80; a wildcard over services has none, because
 * they have their own virtual hosts.
 */
function portOfUnknown(
  selection: RouteSelection,
  groups: readonly ServiceGroup[],
  scope: SidecarScope,
): (hostname: string) => number | undefined {
  const { services } = selection.egress;
  const registered = namesOf(services, scope);
  const wildcards = new Map<string, number>();
  for (const [place, { service }] of groups.entries()) {
    if (isWildcard(service.hostname) && !wildcards.has(service.hostname)) wildcards.set(service.hostname, place);
  }
  const isOverServices = wildcardsOver(services);
  const onUnknownPort = selection.port === undefined || selection.port === portOfUnknownHosts;
  return (hostname) => {
    if (registered.has(hostname)) return undefined;
    const wider =
      wildcards.size === 0 ? [] : [...coveringKeys(hostname, wildcards)].map((host) => wildcards.get(host)!);
    if (wider.length > 0) return groups[Math.min(...wider)]!.port.number;
    // Only a wildcard can have other names within it.
    if (isWildcard(hostname) && isOverServices(hostname)) return undefined;
    return onUnknownPort ? portOfUnknownHosts : undefined;
  };
}

/** Whether any service lies within a wildcard. There may be as many wildcards as services. */
function wildcardsOver(services: readonly Service[]): (wildcard: string) => boolean {
  let wider: Names | undefined;
  return (wildcard) => {
    if (isPartialWildcard(wildcard)) return services.some(({ hostname }) => isHostWithin(hostname, wildcard));
    wider ??= new Set(services.flatMap(({ hostname }) => [...widerHosts(hostname)]));
    return wider.has(wildcard);
  };
}

type Names = ReadonlySet<string>;
const namesOfServices = new WeakMap<readonly Service[], WeakMap<readonly Service[], Names>>();

/** Names that stand for something in the mesh: what stands for nothing is nobody's. */
function namesOf(services: readonly Service[], scope: SidecarScope): Names {
  const known = namesOfServices.get(services) ?? new WeakMap<readonly Service[], Names>();
  namesOfServices.set(services, known);
  let names = known.get(scope.services);
  if (names === undefined) {
    const behind = (service: Service) => serviceBehind(service, (host) => scope.serviceByHostname(host));
    const standing = services.filter((service) => !isAlias(service) || behind(service) !== undefined);
    names = new Set(standing.map(({ hostname }) => hostname));
    known.set(scope.services, names);
  }
  return names;
}
