import {
  type Decoder,
  type FieldError,
  fieldPath,
  list,
  mapDecoder,
  name,
  nonEmptyList,
  oneOf,
  optional,
  port,
  refine,
  required,
  restrictingField,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withSchemaValidation } from '../../fields/description.ts';
import { isWildcard } from '../../fields/hostname.ts';
import { limitErrors } from '../../fields/limits.ts';
import { anyHostViolation, isCidr, isHostname, isIpAddress, partialWildcardWarning } from '../../fields/names.ts';
import { hostPattern, subnetPattern } from '../../fields/patterns.ts';
import { isHttp, isTcp, isTls, protocolOf } from '../../fields/protocol.ts';
import * as violation from '../../fields/violation.ts';
import {
  duplicateErrors,
  exportTo,
  hasUnixScheme,
  hostText,
  subnetViolation,
  workloadSelector,
} from '../field-rules.ts';
import type { MetadataTexts } from '../kind.ts';
import {
  maxServiceEntryAltNames,
  maxServiceEntryClusters,
  maxServiceEntryEndpoints,
  maxServiceEntryListeners,
  maxServiceEntryPorts,
} from '../object-limits.ts';
import { portProtocol } from '../port-protocol.ts';
import type { ServiceEntry, ServiceEntryPort } from './service-entry.ts';
import { workloadEntry } from './workload-entry.decode.ts';
import type { WorkloadEntry } from './workload-entry.ts';

/** Protocol detection would stall on ports of server-first protocols. */
const servicePort = mapDecoder(
  struct<Omit<ServiceEntryPort, 'protocol'> & Partial<ServiceEntryPort>>({
    number: required(port),
    name: required(name),
    protocol: optional(portProtocol(['UDP', 'HTTP_PROXY'])),
    targetPort: optional(port),
  }),
  ({ protocol, ...portFields }): ServiceEntryPort => ({
    ...portFields,
    protocol: protocol ?? protocolOf({ name: '', number: portFields.number }),
  }),
);

const uniquePorts = {
  rules: [{ rule: 'self.all(a, self.exists_one(b, b.number == a.number))', message: 'must not repeat a number' }],
};

export const serviceEntry: Decoder<ServiceEntry> = withSchemaValidation(
  refine(
    struct<ServiceEntry>({
      hosts: required(
        nonEmptyList(
          withSchemaValidation(hostText(serviceHostViolation), { pattern: hostPattern, not: { enum: ['*'] } }),
        ),
      ),
      addresses: optional(
        list(
          withSchemaValidation(
            refine(name, (address, path) => violation.errorsAt(path, subnetViolation(address))),
            { pattern: subnetPattern },
          ),
        ),
      ),
      ports: withDefault(withSchemaValidation(list(servicePort, maxServiceEntryPorts), uniquePorts), []),
      location: withDefault(oneOf(['MESH_EXTERNAL', 'MESH_INTERNAL']), 'MESH_EXTERNAL'),
      resolution: withDefault(oneOf(['NONE', 'STATIC', 'DNS', 'DNS_ROUND_ROBIN', 'DYNAMIC_DNS']), 'NONE'),
      endpoints: optional(list(workloadEntry)),
      workloadSelector: restrictingField(optional(workloadSelector)),
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
        message: violation.exclusiveFields(['endpoints', 'workloadSelector']).message,
      },
      {
        rule: "!has(self.endpoints) || size(self.endpoints) == 0 || (has(self.resolution) && self.resolution != 'NONE')",
        message: violation.excludedField('with resolution NONE').message,
        fieldPath: '.endpoints',
      },
      {
        rule: "!has(self.resolution) || self.resolution != 'DNS_ROUND_ROBIN' || !has(self.endpoints) || size(self.endpoints) <= 1",
        message: violation.conflict('must have at most one endpoint with resolution DNS_ROUND_ROBIN').message,
        fieldPath: '.endpoints',
      },
      {
        rule: "!has(self.resolution) || self.resolution != 'DYNAMIC_DNS' || !(has(self.endpoints) || has(self.workloadSelector))",
        message: 'endpoints and workloadSelector must not be set with resolution DYNAMIC_DNS',
      },
    ],
  },
);

function serviceHostViolation(host: string): violation.FieldViolation | undefined {
  return host === '*'
    ? violation.disallowedValue('must not be *: it would match all traffic of the mesh', host)
    : anyHostViolation(host);
}

/** Envoy can neither match a partial wildcard with an SNI nor resolve it. */
function partialHostErrors({ hosts, ports, resolution }: ServiceEntry, path: string): FieldError[] {
  const isTlsPort = ports.some(({ protocol }) => isTls(protocol));
  if (!isTlsPort && resolution !== 'DYNAMIC_DNS') return [];
  const condition = isTlsPort ? 'on a port with TLS' : 'with resolution DYNAMIC_DNS';
  return hosts.flatMap((host, index) =>
    violation.errorsAt(
      `${fieldPath(path, 'hosts')}[${index}]`,
      partialWildcardWarning(host) && violation.mustBe(`*. and a domain, or a host name, ${condition}`, host),
    ),
  );
}

const endpointsPath = (path: string, index: number): string => `${fieldPath(path, 'endpoints')}[${index}]`;

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
    ...duplicateErrors(
      spec.hosts,
      (host) => host,
      (index) => `${fieldPath(path, 'hosts')}[${index}]`,
      'host',
    ),
    ...duplicateErrors(
      spec.ports,
      (item) => item.name,
      (index) => `${portPath(index)}.name`,
      'name',
    ),
    ...duplicateErrors(
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
    return violation.errorsAt(
      fieldPath(path, 'addresses'),
      addresses.length > 0 ? violation.excludedField('with resolution DYNAMIC_DNS') : undefined,
    );
  }
  if (spec.resolution === 'NONE' || spec.resolution === 'STATIC') return [];
  return addresses.flatMap((address, index) => {
    const range = isCidr(address) && !isSingleAddress(address);
    return violation.errorsAt(
      `${fieldPath(path, 'addresses')}[${index}]`,
      range ? violation.conflict(`must be an address, not a CIDR, with resolution ${spec.resolution}`) : undefined,
    );
  });
}

export function isSingleAddress(cidr: string): boolean {
  return cidr.endsWith(cidr.includes(':') ? '/128' : '/32');
}

function resolutionErrors(spec: ServiceEntry, path: string): FieldError[] {
  const endpoints = spec.endpoints ?? [];
  const hasEndpointsAndSelector = endpoints.length > 0 && spec.workloadSelector !== undefined;
  const errors = violation.errorsAt(
    path,
    hasEndpointsAndSelector ? violation.exclusiveFields(['endpoints', 'workloadSelector']) : undefined,
  );
  switch (spec.resolution) {
    case 'NONE':
      if (endpoints.length === 0) return errors;
      return [
        ...errors,
        violation.fieldError(fieldPath(path, 'endpoints'), violation.excludedField('with resolution NONE')),
      ];
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
  if (hasUnixScheme(address)) {
    const hasOnePort = spec.ports.length === 1;
    return violation.errorsAt(
      fieldPath(path, 'address'),
      hasOnePort
        ? undefined
        : violation.conflict('must not be a unix socket unless the ServiceEntry has exactly one port'),
    );
  }
  const isValidAddress = address === '' || isIpAddress(address);
  return violation.errorsAt(
    fieldPath(path, 'address'),
    isValidAddress ? undefined : violation.mustBe('an IP address with resolution STATIC', address),
  );
}

function dnsErrors(spec: ServiceEntry, path: string): FieldError[] {
  const endpoints = spec.endpoints ?? [];
  const errors = endpoints.flatMap((endpoint, index) => {
    const unix = hasUnixScheme(endpoint.address);
    return violation.errorsAt(
      `${endpointsPath(path, index)}.address`,
      unix ? violation.conflict(`must not be a unix socket with resolution ${spec.resolution}`) : undefined,
    );
  });
  if (spec.resolution === 'DNS_ROUND_ROBIN' && endpoints.length > 1) {
    errors.push(
      violation.fieldError(
        fieldPath(path, 'endpoints'),
        violation.conflict('must have at most one endpoint with resolution DNS_ROUND_ROBIN'),
      ),
    );
  }
  if (endpoints.length > 0 || spec.workloadSelector !== undefined) return errors;
  for (const [index, host] of spec.hosts.entries()) {
    const isResolvable = !isWildcard(host) && isHostname(host);
    if (isResolvable) continue;
    errors.push(
      violation.fieldError(
        `${fieldPath(path, 'hosts')}[${index}]`,
        violation.conflict(`${host} cannot be resolved by DNS: set endpoints`),
      ),
    );
  }
  return errors;
}

function dynamicDnsErrors(spec: ServiceEntry, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, host] of spec.hosts.entries()) {
    if (!isWildcard(host))
      errors.push(
        violation.fieldError(
          `${fieldPath(path, 'hosts')}[${index}]`,
          violation.mustBe('a wildcard with resolution DYNAMIC_DNS', host),
        ),
      );
  }
  for (const [index, item] of spec.ports.entries()) {
    if (isHttp(item.protocol) || isTls(item.protocol)) continue;
    errors.push(
      violation.fieldError(
        `${fieldPath(path, 'ports')}[${index}].protocol`,
        violation.mustBe('HTTP or TLS with resolution DYNAMIC_DNS', item.protocol),
      ),
    );
  }
  for (const field of ['endpoints', 'workloadSelector'] as const) {
    if (spec[field] !== undefined)
      errors.push(violation.fieldError(fieldPath(path, field), violation.excludedField('with resolution DYNAMIC_DNS')));
  }
  return errors;
}

const waypointLabel = 'istio.io/use-waypoint';

/** As in Istio, only sidecars resolve mesh-internal hosts with DYNAMIC_DNS. */
export function waypointErrors(
  { resolution, location }: ServiceEntry,
  { labels }: Pick<MetadataTexts, 'labels'>,
): FieldError[] {
  const waypoint = labels[waypointLabel] ?? '';
  const usesWaypoint = waypoint !== '' && waypoint.toLowerCase() !== 'none';
  return violation.errorsAt(
    `labels["${waypointLabel}"]`,
    usesWaypoint && resolution === 'DYNAMIC_DNS' && location === 'MESH_INTERNAL'
      ? violation.unsupportedFeature(
          'is not supported with resolution DYNAMIC_DNS and location MESH_INTERNAL: remove the label, or set location to MESH_EXTERNAL',
        )
      : undefined,
  );
}

function endpointPortErrors(spec: ServiceEntry, path: string): FieldError[] {
  const portNames = new Set(spec.ports.map((item) => item.name));
  return (spec.endpoints ?? []).flatMap((endpoint, index) =>
    Object.keys(endpoint.ports ?? {})
      .filter((portName) => !portNames.has(portName))
      .map((portName) =>
        violation.fieldError(
          fieldPath(`${endpointsPath(path, index)}.ports`, portName),
          violation.unknownReference(
            `is not the name of a port of the object (${[...portNames].join(', ')})`,
            portName,
          ),
        ),
      ),
  );
}

export function serviceEntryWarnings(spec: ServiceEntry): FieldError[] {
  const tcpOnly = spec.ports.length > 0 && spec.ports.every(({ protocol }) => isTcp(protocol) && !isTls(protocol));
  const areHostsAmbiguous = spec.hosts.length > 1 && tcpOnly && (spec.addresses?.length ?? 0) === 0;
  const isUnserved =
    spec.resolution === 'STATIC' && spec.workloadSelector === undefined && (spec.endpoints?.length ?? 0) === 0;
  const hasEmptySelector =
    spec.workloadSelector !== undefined && Object.keys(spec.workloadSelector.labels).length === 0;
  return [
    ...spec.hosts.flatMap((host, index) => violation.errorsAt(`hosts[${index}]`, partialWildcardWarning(host))),
    ...violation.errorsAt(
      'hosts',
      areHostsAmbiguous
        ? violation.doubtfulValue('several hosts on TCP ports without addresses cannot be distinguished')
        : undefined,
    ),
    ...violation.errorsAt(
      'workloadSelector',
      hasEmptySelector
        ? violation.doubtfulValue('has no labels: it selects every workload of the namespace')
        : undefined,
    ),
    ...violation.errorsAt(
      'endpoints',
      isUnserved
        ? violation.doubtfulValue('neither endpoints nor workloadSelector is set: the service has no endpoints')
        : undefined,
    ),
    ...violation.errorsAt(
      'ports',
      spec.ports.length === 0 ? violation.ineffectiveField('the list is empty') : undefined,
    ),
  ];
}
