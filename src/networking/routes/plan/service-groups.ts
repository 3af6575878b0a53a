/** Groups services by host and port, with the domains under which clients request them. */
import { sameItems } from '../../../model/collections/same-items.ts';
import { setBounded } from '../../../model/collections/set-bounded.ts';
import { isHttp } from '../../../model/fields/protocol.ts';
import { isHeadless, type ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import { addressingKey, virtualAddresses } from '../../../model/proxy/service-addresses.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { Port, Service } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { serviceText } from '../../inputs/input-text.ts';
import { virtualHostName } from '../../traffic/resource-names.ts';
import { countSharedLabels, type DomainOptions, domainsOf, type NamedService } from '../translate/domains.ts';

export interface Domains {
  readonly domainNames: readonly string[];
  readonly text: string;
  /** Number of trailing labels that host and search domain have in common; absent if the domains also depend on other inputs. */
  readonly sharedLabelCount?: number;
}

export interface ServiceGroup {
  readonly service: Service;
  /** Services with this host and port. A ServiceEntry creates one for each address. */
  readonly services: readonly Service[];
  readonly port: Port;
  readonly addresses: readonly string[];
  /** Unique in a mesh, except for other ports of the same services. */
  readonly text: string;
  readonly domains: Map<string, Domains>;
}

export interface GroupSelection {
  readonly port?: number;
  readonly host?: string;
}

/** Limits caches whose keys (ports and search domains) clients choose. */
const maxSelections = 64;
const maxDomainForms = 16;

const groupsByServices = new WeakMap<readonly Service[], Map<string, readonly ServiceGroup[]>>();
const groupsByFirstService = new WeakMap<Service, Map<string, ServiceGroup[]>>();

/**
 * Groups in order of precedence for domains. Returns the same list for the same services, and the same group for the
 * same services in other lists.
 */
export function serviceGroups(
  services: readonly Service[],
  selection: GroupSelection,
  shape: ProxyShape,
  push: Pick<PushContext, 'features'>,
): readonly ServiceGroup[] {
  const client = `${addressingKey(shape)} ${push.features.autoAllocate}`;
  // Groups of a single host are not cached, because clients may request any number of names.
  if (selection.host !== undefined) return buildGroups(services, selection, client, shape, push);
  const key = `${selection.port} ${client}`;
  const groupsByKey = groupsByServices.get(services) ?? new Map<string, readonly ServiceGroup[]>();
  groupsByServices.set(services, groupsByKey);
  let groups = groupsByKey.get(key);
  if (groups === undefined) {
    groups = buildGroups(services, selection, client, shape, push);
    setBounded(groupsByKey, key, groups, maxSelections);
  }
  return groups;
}

/** Returns the same object for clients with equal short names. */
export function domainsOfGroup(group: ServiceGroup, aliases: readonly string[], options: DomainOptions): Domains {
  const { hostname } = group.service;
  const labels = [hostname, ...aliases].map((name) => countSharedLabels(name, options.proxyDomain));
  const key = `${labels} ${options.port} ${options.absoluteNames} ${aliases}`;
  let domains = group.domains.get(key);
  if (domains === undefined) {
    const { service, addresses } = group;
    const domainsAndText = domainsWithText({ hostname, headless: isHeadless(service), addresses, aliases }, options);
    domains = aliases.length === 0 ? { ...domainsAndText, sharedLabelCount: labels[0]! } : domainsAndText;
    setBounded(group.domains, key, domains, maxDomainForms);
  }
  return domains;
}

export function domainsWithText(service: NamedService, options: DomainOptions): Domains {
  const allDomains = domainsOf(service, options);
  return { domainNames: allDomains, text: allDomains.join() };
}

function buildGroups(
  services: readonly Service[],
  { port: portNumber, host }: GroupSelection,
  client: string,
  shape: ProxyShape,
  { features }: Pick<PushContext, 'features'>,
): readonly ServiceGroup[] {
  const groupsByPort = new Map<string, { readonly port: Port; readonly services: Service[] }>();
  for (const service of services) {
    if (isAlias(service) || (host !== undefined && service.hostname !== host)) continue;
    for (const port of service.ports) {
      if (portNumber !== undefined && port.number !== portNumber) continue;
      if (!isHttp(port.protocol) && port.protocol !== 'unsupported') continue;
      const key = virtualHostName(service.hostname, port.number);
      const group = groupsByPort.get(key);
      if (group === undefined) groupsByPort.set(key, { port, services: [service] });
      else group.services.push(service);
    }
  }
  const groups = [...groupsByPort.values()].map((portGroup): ServiceGroup => {
    const [service] = portGroup.services as [Service];
    const key = `${portGroup.port.number} ${client}`;
    const groupsByPortAndClient = groupsByFirstService.get(service) ?? new Map<string, ServiceGroup[]>();
    groupsByFirstService.set(service, groupsByPortAndClient);
    const candidates = groupsByPortAndClient.get(key) ?? [];
    const matchingGroup = candidates.find((group) => sameItems(group.services, portGroup.services));
    if (matchingGroup !== undefined) return matchingGroup;
    const addresses = portGroup.services.flatMap((portService) => virtualAddresses(portService, shape, features));
    const text = `${portGroup.services.map(serviceText).join(' ')} ${addresses.join()}`;
    const group = { ...portGroup, service, addresses, text, domains: new Map<string, Domains>() };
    setBounded(groupsByPortAndClient, key, [group, ...candidates.slice(0, 3)], maxDomainForms);
    return group;
  });
  // A host without a port means port 80, so port 80 comes first and gets the names without a port.
  return groups.sort((a, b) => Number(b.port.number === 80) - Number(a.port.number === 80));
}
