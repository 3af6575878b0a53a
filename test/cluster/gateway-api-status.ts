/**
 * CRDs of the Gateway API whose schema validates only the status (bounds, required fields, lists that are maps,
 * a Gateway's default), so that a real API server checks status writes. Other fields are accepted unchanged.
 */
import { customResourceDefinitions, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KindName } from '../../src/model/kinds/index.ts';
import { eventually } from '../harness/eventually.ts';
import type { Cluster } from './cluster.ts';
import { definitionOf } from './mesh-objects.ts';

const text = (extraFields: object = {}) => ({ type: 'string', ...extraFields });
const object = (properties: object, required: readonly string[] = []) => ({ type: 'object', properties, required });
const mapBy = (key: string, items: object, maxItems: number) => ({
  ...{ type: 'array', maxItems, items, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] },
});

const condition = object(
  {
    type: text({ maxLength: 316 }),
    status: text({ enum: ['True', 'False', 'Unknown'] }),
    reason: text({ minLength: 1, maxLength: 1024, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$' }),
    message: text({ maxLength: 32768 }),
    lastTransitionTime: text({ format: 'date-time' }),
    observedGeneration: { type: 'integer', format: 'int64', minimum: 0 },
  },
  ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
);
const conditions = mapBy('type', condition, 8);
const pending = ['Accepted', 'Programmed'].map((type) => ({
  ...{ type, status: 'Unknown', reason: 'Pending', message: 'Waiting for controller' },
  lastTransitionTime: '1970-01-01T00:00:00Z',
}));
const kind = object({ group: text(), kind: text({ minLength: 1 }) }, ['kind']);
const listener = object(
  {
    ...{ name: text({ minLength: 1 }), attachedRoutes: { type: 'integer' }, conditions },
    supportedKinds: { type: 'array', maxItems: 8, items: kind },
  },
  ['name', 'attachedRoutes', 'conditions', 'supportedKinds'],
);
const address = object({ type: text({ default: 'IPAddress' }), value: text({ minLength: 1, maxLength: 253 }) }, [
  'value',
]);
const parentRef = object(
  {
    ...{ group: text({ default: 'gateway.networking.k8s.io' }), kind: text({ default: 'Gateway' }) },
    ...{ name: text({ minLength: 1 }), namespace: text(), sectionName: text(), port: { type: 'integer' } },
  },
  ['name'],
);
const parent = object({ parentRef, controllerName: text({ pattern: '^[a-z0-9.-]+/.+$' }), conditions }, [
  ...['conditions', 'controllerName', 'parentRef'],
]);

const routeStatus = object(
  { parents: { type: 'array', maxItems: 32, items: parent, 'x-kubernetes-list-type': 'atomic' } },
  ['parents'],
);

const ancestor = object({ ancestorRef: parentRef, controllerName: text({ pattern: '^[a-z0-9.-]+/.+$' }), conditions }, [
  ...['ancestorRef', 'conditions', 'controllerName'],
]);
const policyStatus = object(
  { ancestors: { type: 'array', maxItems: 16, items: ancestor, 'x-kubernetes-list-type': 'atomic' } },
  ['ancestors'],
);
const feature = object({ name: text() }, ['name']);

const statuses: Partial<Record<KindName, object>> = {
  BackendTLSPolicy: policyStatus,
  GatewayClass: {
    ...object({ conditions, supportedFeatures: mapBy('name', feature, 64) }),
    default: { conditions: pending.slice(0, 1) },
  },
  KubernetesGateway: {
    ...object({
      conditions,
      addresses: { type: 'array', maxItems: 16, items: address },
      listeners: mapBy('name', listener, 64),
    }),
    default: { conditions: pending },
  },
  HTTPRoute: routeStatus,
  GRPCRoute: routeStatus,
  TLSRoute: routeStatus,
  TCPRoute: routeStatus,
};

/** Resolves when the server serves them. */
export async function defineGatewayApi(cluster: Cluster): Promise<void> {
  const all: readonly KindName[] = [
    'GatewayClass',
    'KubernetesGateway',
    'HTTPRoute',
    'GRPCRoute',
    'TLSRoute',
    'TCPRoute',
    'ReferenceGrant',
    'BackendTLSPolicy',
  ];
  for (const name of all) {
    const { metadata, spec } = definitionOf(name);
    const versions = spec.versions.map((version) => {
      const { openAPIV3Schema: openSchema } = version.schema;
      const schema = {
        type: 'object',
        properties: { ...openSchema.properties, ...(statuses[name] && { status: statuses[name] }) },
      };
      return { ...version, schema: { openAPIV3Schema: schema } };
    });
    await cluster.apply(customResourceDefinitions, { metadata, spec: { ...spec, versions } });
  }
  await eventually('the kinds are served', async () => {
    const neverAborted = new AbortController().signal;
    await Promise.all(all.map((name) => cluster.admin.list(resourceOf(name), { limit: 1 }, neverAborted)));
    return true;
  });
}
