import {
  type Decoder,
  type FieldError,
  fieldPath,
  list,
  mapped,
  name,
  nonEmptyList,
  oneOf,
  optional,
  port,
  refine,
  required,
  restricting,
  struct,
  withDefault,
} from '../fields/decode.ts';
import { inSchema } from '../fields/description.ts';
import { isWildcard } from '../fields/hostname.ts';
import { limitErrors } from '../fields/limits.ts';
import { anyHostMistake, isCidr, isHostname, isIpAddress, partialWildcardWarning } from '../fields/names.ts';
import { hostPattern, subnetPattern } from '../fields/patterns.ts';
import { isHttp, isTcp, isTls, protocolOf } from '../fields/protocol.ts';
import {
  exportTo,
  hostText,
  meansUnixAddress,
  mistakeAt,
  repetitions,
  subnetMistake,
  workloadSelector,
} from './field-rules.ts';
import type { MetadataTexts } from './kind.ts';
import {
  maxServiceEntryAltNames,
  maxServiceEntryClusters,
  maxServiceEntryEndpoints,
  maxServiceEntryListeners,
  maxServiceEntryPorts,
} from './object-limits.ts';
import { portProtocol } from './port-protocol.ts';
import type { ServiceEntry, ServiceEntryPort } from './service-entry.ts';
import { workloadEntry } from './workload-entry.decode.ts';
import type { WorkloadEntry } from './workload-entry.ts';

/** A protocol that nobody said is found out by looking at the bytes, but where a silent client would be stalled. */
const servicePort = mapped(
  struct<Omit<ServiceEntryPort, 'protocol'> & Partial<ServiceEntryPort>>({
    number: required(port),
    name: required(name),
    protocol: optional(portProtocol(['UDP', 'HTTP_PROXY'])),
    targetPort: optional(port),
  }),
  ({ protocol, ...about }): ServiceEntryPort => ({
    ...about,
    protocol: protocol ?? protocolOf({ name: '', number: about.number }),
  }),
);

const uniquePorts = {
  rules: [{ rule: 'self.all(a, self.exists_one(b, b.number == a.number))', message: 'must have each number once' }],
};

/** A ServiceEntry's `spec`. */
export const serviceEntry: Decoder<ServiceEntry> = inSchema(
  refine(
    struct<ServiceEntry>({
      hosts: required(
        nonEmptyList(inSchema(hostText(serviceHostMistake), { pattern: hostPattern, not: { enum: ['*'] } })),
      ),
      addresses: optional(
        list(
          inSchema(
            refine(name, (address, path) => mistakeAt(path, subnetMistake(address))),
            { pattern: subnetPattern },
          ),
        ),
      ),
      ports: withDefault(inSchema(list(servicePort, maxServiceEntryPorts), uniquePorts), []),
      location: withDefault(oneOf(['MESH_EXTERNAL', 'MESH_INTERNAL']), 'MESH_EXTERNAL'),
      resolution: withDefault(oneOf(['NONE', 'STATIC', 'DNS', 'DNS_ROUND_ROBIN', 'DYNAMIC_DNS']), 'NONE'),
      endpoints: optional(list(workloadEntry)),
      workloadSelector: restricting(optional(workloadSelector)),
      exportTo: optional(exportTo),
      subjectAltNames: optional(list(name)),
    }),
    sizeErrors,
    repetitionErrors,
    addressErrors,
    resolutionErrors,
    partialHostErrors,
    endpointPortErrors,
  ),
  {
    rules: [
      {
        rule: '!has(self.endpoints) || size(self.endpoints) == 0 || !has(self.workloadSelector)',
        message: 'must have only one of endpoints and workloadSelector',
      },
      {
        rule: "!has(self.endpoints) || size(self.endpoints) == 0 || (has(self.resolution) && self.resolution != 'NONE')",
        message: 'must not be given with resolution NONE',
        fieldPath: '.endpoints',
      },
      {
        rule: "!has(self.resolution) || self.resolution != 'DNS_ROUND_ROBIN' || !has(self.endpoints) || size(self.endpoints) <= 1",
        message: 'must have at most one endpoint with DNS_ROUND_ROBIN',
        fieldPath: '.endpoints',
      },
      {
        rule: "!has(self.resolution) || self.resolution != 'DYNAMIC_DNS' || !(has(self.endpoints) || has(self.workloadSelector))",
        message: 'endpoints and workloadSelector must not be given with DYNAMIC_DNS',
      },
    ],
  },
);

function serviceHostMistake(host: string): string | undefined {
  return host === '*' ? 'must not be *: it would take all traffic of the mesh' : anyHostMistake(host);
}

/** Envoy matches an SNI by no such host, and resolves none. */
function partialHostErrors({ hosts, ports, resolution }: ServiceEntry, path: string): FieldError[] {
  const isTlsPort = ports.some(({ protocol }) => isTls(protocol));
  if (!isTlsPort && resolution !== 'DYNAMIC_DNS') return [];
  const why = isTlsPort ? 'on a port with TLS, because an SNI is matched by no other' : 'with resolution DYNAMIC_DNS';
  return hosts.flatMap((host, index) =>
    mistakeAt(
      `${fieldPath(path, 'hosts')}[${index}]`,
      partialWildcardWarning(host) && `must be *. and a domain, or a host name, ${why}`,
    ),
  );
}

const endpointsPath = (path: string, index: number): string => `${fieldPath(path, 'endpoints')}[${index}]`;

/** What the object expands to. */
function sizeErrors(spec: ServiceEntry, path: string): FieldError[] {
  const clusters = spec.hosts.length * spec.ports.length;
  const { addresses = [], endpoints = [], subjectAltNames = [] } = spec;
  return [
    ...limitErrors(fieldPath(path, 'hosts'), clusters, maxServiceEntryClusters, 'clusters (hosts x ports)'),
    ...limitErrors(
      fieldPath(path, 'addresses'),
      Math.max(spec.ports.length, spec.hosts.length) * addresses.length,
      maxServiceEntryListeners,
      'listeners or services (ports or hosts x addresses)',
    ),
    ...limitErrors(
      fieldPath(path, 'endpoints'),
      clusters * endpoints.length,
      maxServiceEntryEndpoints,
      'endpoints in all clusters (hosts x ports x endpoints)',
    ),
    ...limitErrors(
      fieldPath(path, 'subjectAltNames'),
      clusters * subjectAltNames.length,
      maxServiceEntryAltNames,
      'names in all clusters (hosts x ports x subjectAltNames)',
    ),
  ];
}

function repetitionErrors(spec: ServiceEntry, path: string): FieldError[] {
  const portPath = (index: number): string => `${fieldPath(path, 'ports')}[${index}]`;
  return [
    ...repetitions(
      spec.hosts,
      (host) => host,
      (index) => `${fieldPath(path, 'hosts')}[${index}]`,
      'host',
    ),
    ...repetitions(
      spec.ports,
      (item) => item.name,
      (index) => `${portPath(index)}.name`,
      'name',
    ),
    ...repetitions(
      spec.ports,
      (item) => String(item.number),
      (index) => `${portPath(index)}.number`,
      'number',
    ),
  ];
}

function addressErrors(spec: ServiceEntry, path: string): FieldError[] {
  const addresses = spec.addresses ?? [];
  if (spec.resolution === 'DYNAMIC_DNS') {
    return mistakeAt(
      fieldPath(path, 'addresses'),
      addresses.length > 0 ? 'must not be given with DYNAMIC_DNS' : undefined,
    );
  }
  if (spec.resolution === 'NONE' || spec.resolution === 'STATIC') return [];
  return addresses.flatMap((address, index) => {
    const range = isCidr(address) && !isSingleAddress(address);
    return mistakeAt(
      `${fieldPath(path, 'addresses')}[${index}]`,
      range ? `a range needs resolution NONE or STATIC, not ${spec.resolution}` : undefined,
    );
  });
}

/** `/32` or `/128`: a range of one. */
export function isSingleAddress(cidr: string): boolean {
  return cidr.endsWith(cidr.includes(':') ? '/128' : '/32');
}

function resolutionErrors(spec: ServiceEntry, path: string): FieldError[] {
  const endpoints = spec.endpoints ?? [];
  const both = endpoints.length > 0 && spec.workloadSelector !== undefined;
  const errors = mistakeAt(path, both ? 'must have only one of endpoints and workloadSelector' : undefined);
  switch (spec.resolution) {
    case 'NONE':
      if (endpoints.length === 0) return errors;
      return [...errors, { path: fieldPath(path, 'endpoints'), message: 'must not be given with resolution NONE' }];
    case 'STATIC':
      return [
        ...errors,
        ...endpoints.flatMap((endpoint, index) => staticErrors(spec, endpoint, endpointsPath(path, index))),
      ];
    case 'DNS':
    case 'DNS_ROUND_ROBIN':
      return [...errors, ...dnsErrors(spec, path)];
    case 'DYNAMIC_DNS':
      return [...errors, ...dynamicDnsErrors(spec, path)];
  }
}

function staticErrors(spec: ServiceEntry, endpoint: WorkloadEntry, path: string): FieldError[] {
  const { address } = endpoint;
  if (meansUnixAddress(address)) {
    const one = spec.ports.length === 1;
    return mistakeAt(
      fieldPath(path, 'address'),
      one ? undefined : 'a unix socket serves one port: the object must have exactly one',
    );
  }
  const known = address === '' || isIpAddress(address);
  return mistakeAt(
    fieldPath(path, 'address'),
    known ? undefined : `must be an IP address with resolution STATIC, not ${address}`,
  );
}

function dnsErrors(spec: ServiceEntry, path: string): FieldError[] {
  const endpoints = spec.endpoints ?? [];
  const errors = endpoints.flatMap((endpoint, index) => {
    const unix = meansUnixAddress(endpoint.address);
    return mistakeAt(
      `${endpointsPath(path, index)}.address`,
      unix ? `must not be a unix socket with ${spec.resolution}` : undefined,
    );
  });
  if (spec.resolution === 'DNS_ROUND_ROBIN' && endpoints.length > 1) {
    errors.push({ path: fieldPath(path, 'endpoints'), message: 'must have at most one endpoint with DNS_ROUND_ROBIN' });
  }
  if (endpoints.length > 0 || spec.workloadSelector !== undefined) return errors;
  for (const [index, host] of spec.hosts.entries()) {
    const resolvable = !isWildcard(host) && isHostname(host);
    if (resolvable) continue;
    errors.push({
      path: `${fieldPath(path, 'hosts')}[${index}]`,
      message: `${host} cannot be resolved: give endpoints`,
    });
  }
  return errors;
}

function dynamicDnsErrors(spec: ServiceEntry, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, host] of spec.hosts.entries()) {
    if (!isWildcard(host))
      errors.push({ path: `${fieldPath(path, 'hosts')}[${index}]`, message: 'must be a wildcard with DYNAMIC_DNS' });
  }
  for (const [index, item] of spec.ports.entries()) {
    if (isHttp(item.protocol) || isTls(item.protocol)) continue;
    errors.push({
      path: `${fieldPath(path, 'ports')}[${index}].protocol`,
      message: 'must be HTTP or TLS with DYNAMIC_DNS',
    });
  }
  for (const field of ['endpoints', 'workloadSelector'] as const) {
    if (spec[field] !== undefined)
      errors.push({ path: fieldPath(path, field), message: 'must not be given with DYNAMIC_DNS' });
  }
  return errors;
}

const waypointLabel = 'istio.io/use-waypoint';

/** As in Istio: names of the mesh are resolved by sidecars alone. */
export function waypointErrors(
  { resolution, location }: ServiceEntry,
  { labels }: Pick<MetadataTexts, 'labels'>,
): FieldError[] {
  const waypoint = labels[waypointLabel] ?? '';
  const uses = waypoint !== '' && waypoint.toLowerCase() !== 'none';
  return mistakeAt(
    `labels["${waypointLabel}"]`,
    uses && resolution === 'DYNAMIC_DNS' && location === 'MESH_INTERNAL'
      ? 'is not supported with resolution DYNAMIC_DNS and location MESH_INTERNAL: leave the label out, or set location to MESH_EXTERNAL'
      : undefined,
  );
}

/** The ports of an endpoint are named after the object's. */
function endpointPortErrors(spec: ServiceEntry, path: string): FieldError[] {
  const known = new Set(spec.ports.map((item) => item.name));
  return (spec.endpoints ?? []).flatMap((endpoint, index) =>
    Object.keys(endpoint.ports ?? {})
      .filter((portName) => !known.has(portName))
      .map((portName) => ({
        path: fieldPath(`${endpointsPath(path, index)}.ports`, portName),
        message: `is not the name of a port of the object (${[...known].join(', ')})`,
      })),
  );
}

/** What is allowed and probably not meant (§4.5). */
export function serviceEntryWarnings(spec: ServiceEntry): FieldError[] {
  const tcpOnly = spec.ports.length > 0 && spec.ports.every(({ protocol }) => isTcp(protocol) && !isTls(protocol));
  const blurred = spec.hosts.length > 1 && tcpOnly && (spec.addresses?.length ?? 0) === 0;
  const unserved =
    spec.resolution === 'STATIC' && spec.workloadSelector === undefined && (spec.endpoints?.length ?? 0) === 0;
  const selectsAll = spec.workloadSelector !== undefined && Object.keys(spec.workloadSelector.labels).length === 0;
  return [
    ...spec.hosts.flatMap((host, index) => mistakeAt(`hosts[${index}]`, partialWildcardWarning(host))),
    ...mistakeAt('hosts', blurred ? 'several hosts on TCP ports without addresses cannot be told apart' : undefined),
    ...mistakeAt(
      'workloadSelector',
      selectsAll ? 'has no labels: it selects every workload of the namespace' : undefined,
    ),
    ...mistakeAt('endpoints', unserved ? 'are none, and no workload is selected: nothing serves it' : undefined),
    ...mistakeAt('ports', spec.ports.length === 0 ? 'has none: the object has no effect' : undefined),
  ];
}
