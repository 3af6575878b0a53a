/** Services as route configurations have them: by host and port, each with the names that clients ask for it under. */
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
import { type DomainOptions, domainsOf, type NamedService, sharedLabels } from '../translate/domains.ts';

/** The domains of a virtual host, and a text of them. */
export interface Domains {
  readonly all: readonly string[];
  readonly text: string;
  /** Labels that the host has in common with the client's search domain; absent where more than that counts. */
  readonly shared?: number;
}

export interface ServiceGroup {
  readonly service: Service;
  /** All services of the host and port: a ServiceEntry makes one for each of its addresses. */
  readonly services: readonly Service[];
  readonly port: Port;
  /** Addresses of all services of the group. */
  readonly addresses: readonly string[];
  /** A text that no other group of a mesh has at the same time, but for other ports of the same services. */
  readonly text: string;
  /** What {@link domainsOfGroup} found for some clients. */
  readonly domains: Map<string, Domains>;
}

/** Which services are wanted. */
export interface GroupSelection {
  /** Only of this port; absent: of all. */
  readonly port?: number;
  /** Only this service. */
  readonly host?: string;
}

/** Clients say which ports and how they resolve names: beyond, what was found is forgotten. */
const maxSelections = 64;
const maxForms = 16;

const ofServices = new WeakMap<readonly Service[], Map<string, readonly ServiceGroup[]>>();
const ofFirst = new WeakMap<Service, Map<string, ServiceGroup[]>>();

/**
 * In the order in which they claim domains. The same list for the same services; in lists that differ in others the same
 * group for the same services.
 */
export function serviceGroups(
  services: readonly Service[],
  selection: GroupSelection,
  shape: ProxyShape,
  push: Pick<PushContext, 'features'>,
): readonly ServiceGroup[] {
  const client = `${addressingKey(shape)} ${push.features.autoAllocate}`;
  // Groups of one host are not remembered: there is no end of names that somebody may ask for.
  if (selection.host !== undefined) return makeGroups(services, selection, client, shape, push);
  const key = `${selection.port} ${client}`;
  const known = ofServices.get(services) ?? new Map<string, readonly ServiceGroup[]>();
  ofServices.set(services, known);
  let groups = known.get(key);
  if (groups === undefined) {
    groups = makeGroups(services, selection, client, shape, push);
    setBounded(known, key, groups, maxSelections);
  }
  return groups;
}

/** The names under which a client of a search domain asks for a group: the same object for clients who say the same. */
export function domainsOfGroup(group: ServiceGroup, aliases: readonly string[], options: DomainOptions): Domains {
  const { hostname } = group.service;
  const labels = [hostname, ...aliases].map((name) => sharedLabels(name, options.proxyDomain));
  const key = `${labels} ${options.port} ${options.absoluteNames} ${aliases}`;
  let domains = group.domains.get(key);
  if (domains === undefined) {
    const { service, addresses } = group;
    const texted = textedDomains({ hostname, headless: isHeadless(service), addresses, aliases }, options);
    domains = aliases.length === 0 ? { ...texted, shared: labels[0]! } : texted;
    setBounded(group.domains, key, domains, maxForms);
  }
  return domains;
}

export function textedDomains(service: NamedService, options: DomainOptions): Domains {
  const all = domainsOf(service, options);
  return { all, text: all.join() };
}

function makeGroups(
  services: readonly Service[],
  { port: wanted, host }: GroupSelection,
  client: string,
  shape: ProxyShape,
  { features }: Pick<PushContext, 'features'>,
): readonly ServiceGroup[] {
  const found = new Map<string, { readonly port: Port; readonly services: Service[] }>();
  for (const service of services) {
    if (isAlias(service) || (host !== undefined && service.hostname !== host)) continue;
    for (const port of service.ports) {
      if (wanted !== undefined && port.number !== wanted) continue;
      if (!isHttp(port.protocol) && port.protocol !== 'unsupported') continue;
      const key = virtualHostName(service.hostname, port.number);
      const group = found.get(key);
      if (group === undefined) found.set(key, { port, services: [service] });
      else group.services.push(service);
    }
  }
  const groups = [...found.values()].map((one): ServiceGroup => {
    const [service] = one.services as [Service];
    const key = `${one.port.number} ${client}`;
    const known = ofFirst.get(service) ?? new Map<string, ServiceGroup[]>();
    ofFirst.set(service, known);
    const alike = known.get(key) ?? [];
    const same = alike.find((group) => sameItems(group.services, one.services));
    if (same !== undefined) return same;
    const addresses = one.services.flatMap((each) => virtualAddresses(each, shape, features));
    const text = `${one.services.map(serviceText).join(' ')} ${addresses.join()}`;
    const group = { ...one, service, addresses, text, domains: new Map<string, Domains>() };
    setBounded(known, key, [group, ...alike.slice(0, 3)], maxForms);
    return group;
  });
  // A client that names no port means 80: that service is the first to claim the bare name.
  return groups.sort((a, b) => Number(b.port.number === 80) - Number(a.port.number === 80));
}
