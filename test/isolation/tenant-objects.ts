/** Random objects of a tenant, of every namespaced kind, and the WorkloadEntries that its machines register. */

import { entryOf, readGroup } from '../../src/discovery/registration/group-entry.ts';
import { claimOf, requestsRegistration } from '../../src/discovery/registration/workload-claim.ts';
import type { Config } from '../../src/model/config/config.ts';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import type { Draw } from '../random-config/draw.ts';
import { withUserError } from '../random-config/user-errors.ts';
import * as of from './foreign-values.ts';
import { type BodyGenerator, istioObjects } from './tenant-istio.ts';
import { kubernetesObjects } from './tenant-kubernetes.ts';

/** The test compares the keys with the table of kinds, because a missing kind would not be tested. */
export const makers: Readonly<Partial<Record<KindName, BodyGenerator>>> = { ...istioObjects, ...kubernetesObjects };

/** Kinds whose attacks probably need several objects that name each other. */
const relatedKinds: readonly (readonly KindName[])[] = [
  ['ServiceEntry', 'VirtualService', 'DestinationRule'],
  ['ServiceEntry', 'WorkloadEntry'],
  ['Service', 'EndpointSlice'],
  ['Service', 'EndpointSlice', 'Pod', 'DestinationRule'],
  ['Service', 'Endpoints', 'PeerAuthentication'],
  ['Gateway', 'VirtualService'],
  ['KubernetesGateway', 'HTTPRoute', 'Service'],
  ['HTTPRoute', 'ReferenceGrant'],
];

const allKinds = Object.keys(makers) as KindName[];

/** Kinds of some objects: arbitrary ones, or related ones. */
export function someKinds(draw: Draw): readonly KindName[] {
  return draw.chance(0.5) ? draw.pick(relatedKinds) : draw.list(1, 3, () => draw.pick(allKinds));
}

export interface TenantObject {
  readonly kind: KindName;
  /** The object as JSON, for findings. */
  readonly text: string;
  /** The object, or its substitute if it is rejected; empty if nothing takes effect. */
  readonly configs: readonly Config[];
  readonly isValid: boolean;
  readonly errors: readonly string[];
}

/** The oldest object takes precedence in several rules. */
const ages = ['2019-01-01T00:00:00Z', '2030-01-01T00:00:00Z'];

/** @param objectIndex makes the names unique */
export function tenantObject(kind: KindName, draw: Draw, objectIndex: number): TenantObject {
  const { metadata: { name, ...metadata } = {} as { name?: string }, ...body } = makers[kind]!(draw) as {
    metadata?: { name?: string };
  };
  const row = kinds[kind];
  const isRegistration = kind === 'WorkloadGroup';
  const objectHeader = {
    apiVersion: row.group === '' ? row.versions[0]! : `${row.group}/${row.versions[0]}`,
    kind: 'writtenAs' in row ? row.writtenAs! : kind,
    metadata: {
      ...(isRegistration ? {} : metadata),
      namespace: of.tenant,
      name: name ?? (draw.chance(0.5) ? of.objectName(draw) : `made-${objectIndex}`),
      creationTimestamp: draw.pick(ages),
    },
  };
  const spec = isRegistration ? { ...body, metadata } : body;
  const validObject = row.body === 'spec' ? { ...objectHeader, spec } : { ...objectHeader, ...body };
  const writtenObject =
    row.body === 'spec' && draw.chance(0.1) ? withUserError(validObject as never, draw) : validObject;
  const text = JSON.stringify(writtenObject);
  const { configs, standIns, problems } = readConfigFile('mallory.yaml', text, { creationTimestamp: 0 });
  return {
    kind,
    text,
    configs: [...configs, ...standIns],
    isValid: configs.length > 0,
    errors: problems.filter(({ severity }) => severity === 'error').map(({ field, message }) => `${field}: ${message}`),
  };
}

/** The registration of a tenant's machine and its WorkloadEntry; `undefined` if it is rejected. */
export function registeredEntry(draw: Draw, objectIndex: number): TenantObject | undefined {
  const ip = of.address(draw);
  const node = {
    id: `sidecar~${ip}~ledger-0.bank~bank.svc.cluster.local`,
    cluster: 'ledger.bank',
    verifiedIdentity: `spiffe://cluster.local/ns/${of.tenant}/sa/default`,
    metadata: {
      NAMESPACE: draw.chance(0.8) ? of.tenant : 'bank',
      AUTO_REGISTER_GROUP: draw.pick(['machines', 'machine']),
      LABELS: of.labels(draw),
      ...draw.maybe('NETWORK', 0.3, () => 'west'),
      ...draw.maybe('INSTANCE_IPS', 0.3, () => '10.1.1.1,10.1.9.1'),
    },
  };
  const claim = requestsRegistration(node) ? claimOf(node) : undefined;
  if (claim === undefined || 'code' in claim) return undefined;
  const group = readGroup({
    apiVersion: 'networking.istio.io/v1',
    kind: 'WorkloadGroup',
    metadata: { name: claim.group, namespace: claim.namespace, uid: `${objectIndex}` },
    spec: { template: { serviceAccount: 'default', ports: { http: of.port(draw) } } },
  } as never);
  if ('problem' in group) return undefined;
  const entry = entryOf(claim, group.group, { controller: 'one', connectedAt: '2026-01-01T00:00:00Z' }) as {
    metadata: object;
  };
  const { name, namespace } = claim;
  const text = JSON.stringify({
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'WorkloadEntry' },
    ...entry,
    metadata: { ...entry.metadata, name, namespace },
  });
  const { configs } = readConfigFile('registered.yaml', text, { creationTimestamp: 0 });
  return { kind: 'WorkloadEntry', text, configs, isValid: configs.length > 0, errors: [] };
}
