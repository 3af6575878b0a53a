/** Single faults of all kinds except VirtualServices. */
import { edgeNamespace, type MeshObject, meshObject } from './consistent-mesh.ts';
import {
  addTo,
  ancestorPath,
  change,
  changedAt,
  fieldsOf,
  type Mutation,
  misspelt,
  nameOf,
  networkingApiVersion,
  otherNamespace,
  placesOf,
  renamedAt,
  replaceObject,
  text,
  vs,
} from './mutate.ts';

export const objectMutations: readonly Mutation[] = [
  {
    name: 'the host of a rule is misspelt',
    apply: (mesh, draw) => {
      const usedNames = new Set(
        placesOf(mesh, vs, 'destination.subset').map(({ object }) => nameOf(object).split(' ')[1]),
      );
      const rules = mesh.filter((one) => one.kind === 'DestinationRule' && !usedNames.has(nameOf(one).split(' ')[1]));
      if (rules.length === 0) return undefined;
      const object = draw.pick(rules);
      const { host } = object.spec as { host: string };
      const changedObject = changedAt(object, ['spec', 'host'], misspelt(host, draw)) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`HOST_NOT_FOUND ${nameOf(object)} spec.host`],
      };
    },
  },
  {
    name: 'a port of a rule is shifted',
    apply: change(['DestinationRule', 'portLevelSettings.port.number'], 'PORT_NOT_FOUND', (port: number) => port + 1),
  },
  {
    name: 'a label of a subset is misspelt',
    apply: (mesh, draw) => {
      // A subset without a route may precede its Pods.
      const [use] = draw.some(placesOf(mesh, vs, 'destination.subset'), 1, 1);
      if (use === undefined) return undefined;
      const rule = mesh.find(
        ({ kind, metadata }) =>
          kind === 'DestinationRule' &&
          metadata.name === use.object.metadata.name &&
          metadata.namespace === use.object.metadata.namespace,
      )!;
      const { subsets } = rule.spec as { subsets: { name: string }[] };
      const path = ['spec', 'subsets', subsets.findIndex(({ name }) => name === use.value), 'labels'];
      const changedObject = changedAt(rule, path, { versoin: use.value }) as MeshObject;
      return {
        mesh: replaceObject(mesh, rule, changedObject),
        expected: [`SUBSET_WITHOUT_ENDPOINTS ${nameOf(rule)} ${text(path)}`],
      };
    },
  },
  {
    name: 'a second rule has the same subset',
    apply: addTo('DestinationRule', (object) => {
      const { host, subsets } = object.spec as { host: string; subsets?: object[] };
      if (subsets === undefined) return undefined;
      const addedObject = {
        ...object,
        metadata: { ...object.metadata, name: `${object.metadata.name}-z` },
        spec: { host, subsets: [subsets[0]] },
      };
      return { added: addedObject, expected: [`SUBSET_CONFLICT ${nameOf(addedObject)} spec.subsets[0]`] };
    }),
  },
  {
    name: 'a second rule has a policy',
    apply: addTo('DestinationRule', (object) => {
      const { host, trafficPolicy } = object.spec as { host: string; trafficPolicy?: object };
      if (trafficPolicy === undefined) return undefined;
      const addedObject = {
        ...object,
        metadata: { ...object.metadata, name: `${object.metadata.name}-z` },
        spec: { host, trafficPolicy: { loadBalancer: { simple: 'RANDOM' } } },
      };
      return { added: addedObject, expected: [`TRAFFIC_POLICY_LOST ${nameOf(addedObject)} spec.trafficPolicy`] };
    }),
  },
  {
    name: 'a rule is in another namespace than its service',
    apply: (mesh) => {
      const usedNames = new Set(
        placesOf(mesh, vs, 'destination.subset').map(({ object }) => nameOf(object).split(' ')[1]),
      );
      const object = mesh.find(
        (one) =>
          one.kind === 'DestinationRule' &&
          one.metadata.name !== 'external' &&
          !usedNames.has(nameOf(one).split(' ')[1]),
      );
      if (object === undefined) return undefined;
      const { name, namespace } = object.metadata;
      const host = `${name}.${namespace}.svc.cluster.local`;
      const movedObject = {
        ...object,
        metadata: { name: `${name}-moved`, namespace: edgeNamespace },
        spec: { ...(object.spec as object), host, exportTo: ['*'] },
      };
      return {
        mesh: replaceObject(mesh, object, movedObject),
        expected: [`RULE_NOT_APPLIED ${nameOf(movedObject)} spec.exportTo`],
      };
    },
  },
  ...(
    [
      ['trafficPolicy', { trafficPolicy: { tls: { mode: 'DISABLE' } } }, 'trafficPolicy.tls.mode'],
      [
        'a port level',
        { trafficPolicy: { portLevelSettings: [{ port: { number: 80 }, tls: { mode: 'DISABLE' } }] } },
        'trafficPolicy.portLevelSettings[0].tls.mode',
      ],
      [
        'a subset',
        { subsets: [{ name: 'plain', labels: { version: 'v1' }, trafficPolicy: { tls: { mode: 'SIMPLE' } } }] },
        'subsets[0].trafficPolicy.tls.mode',
      ],
      ['trafficPolicy of a wildcard', { trafficPolicy: { tls: { mode: 'DISABLE' } } }, 'trafficPolicy.tls.mode', '*'],
    ] as const
  ).map(
    ([ruleScope, spec, field, wildcard]): Mutation => ({
      name: `${ruleScope} of a rule connects without mutual TLS where that is required`,
      apply: (mesh) => {
        const peers = mesh.find(({ kind }) => kind === 'PeerAuthentication');
        if (peers === undefined) return undefined;
        const { namespace } = peers.metadata;
        const app = (peers.spec as { selector: { matchLabels: { app: string } } }).selector.matchLabels.app;
        const strict = { ...peers, spec: { ...(peers.spec as object), portLevelMtls: undefined } };
        const remainingObjects = mesh.filter(
          (one) => one.kind !== 'DestinationRule' || one.metadata.namespace !== namespace || one.metadata.name !== app,
        );
        const isRouted = placesOf(remainingObjects, vs, 'destination.subset').some(
          ({ object }) => object.metadata.namespace === namespace && object.metadata.name === app,
        );
        if (isRouted) return undefined;
        const addedObject = meshObject(networkingApiVersion, 'DestinationRule', namespace, 'plain', {
          spec: { host: wildcard ? `${wildcard}.${namespace}.svc.cluster.local` : app, ...spec },
        });
        return {
          mesh: [...replaceObject(remainingObjects, peers, strict), addedObject],
          expected: [`MTLS_CONFLICT ${nameOf(addedObject)} spec.${field}`],
        };
      },
    }),
  ),
  {
    name: 'a policy names the port of the Service',
    apply: (mesh, draw) => {
      const places = placesOf(mesh, 'PeerAuthentication', 'portLevelMtls');
      if (places.length === 0) return undefined;
      const { object, path } = draw.pick(places);
      const changedObject = changedAt(object, path, { 80: { mode: 'PERMISSIVE' } }) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`SERVICE_PORT_IN_POLICY ${nameOf(object)} spec.portLevelMtls.80`],
      };
    },
  },
  ...['PeerAuthentication', 'RequestAuthentication', 'AuthorizationPolicy', 'Telemetry', 'WasmPlugin'].map(
    (kind): Mutation => ({
      name: `the selector of a ${kind} is misspelt`,
      apply: change(
        [kind, 'selector.matchLabels.app'],
        'WORKLOAD_NOT_FOUND',
        (value: string) => `${value}x`,
        ancestorPath(1),
      ),
    }),
  ),
  ...['Sidecar', 'EnvoyFilter'].map(
    (kind): Mutation => ({
      name: `the selector of a ${kind} is misspelt`,
      apply: change(
        [kind, 'workloadSelector.labels.app'],
        'WORKLOAD_NOT_FOUND',
        (value: string) => `${value}x`,
        ancestorPath(1),
      ),
    }),
  ),
  {
    name: 'the selector of a ServiceEntry is misspelt',
    only: 'validate',
    apply: change(['ServiceEntry', 'workloadSelector.labels.app'], 'WORKLOAD_NOT_FOUND', () => 'vmx', ancestorPath(1)),
  },
  {
    name: 'the selector of a Gateway is misspelt',
    apply: change(
      ['Gateway', 'spec.selector.app', networkingApiVersion],
      'WORKLOAD_NOT_FOUND',
      (value: string) => `${value}x`,
      ancestorPath(1),
    ),
  },
  {
    name: 'a principal is misspelt',
    apply: (mesh, draw) => {
      const object = draw.pick(
        mesh.filter((one) => one.kind === 'AuthorizationPolicy' && one.metadata.name === 'callers'),
      );
      if (object === undefined) return undefined;
      const path = ['spec', 'rules', 0, 'from', 0, 'source', 'principals'];
      const changedObject = changedAt(object, path, [
        `cluster.local/ns/${object.metadata.namespace}/sa/none`,
      ]) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`SERVICE_ACCOUNT_NOT_FOUND ${nameOf(object)} ${text(path)}[0]`],
      };
    },
  },
  {
    name: 'an authorizer is misspelt',
    apply: change(['AuthorizationPolicy', 'provider.name'], 'PROVIDER_NOT_FOUND', misspelt),
  },
  {
    name: 'a provider of traces is misspelt',
    apply: change(['Telemetry', 'providers.name'], 'PROVIDER_NOT_FOUND', misspelt),
  },
  {
    name: 'a second policy has the same selector',
    apply: addTo('PeerAuthentication', (object) => {
      const addedObject = { ...object, metadata: { ...object.metadata, name: `${object.metadata.name}-z` } };
      return { added: addedObject, expected: [`SELECTOR_CONFLICT ${nameOf(addedObject)} spec.selector.matchLabels`] };
    }),
  },
  {
    name: 'a second Sidecar has the same selector',
    apply: addTo('Sidecar', (object) => {
      const addedObject = { ...object, metadata: { ...object.metadata, name: `${object.metadata.name}-z` } };
      return {
        added: addedObject,
        expected: [`SELECTOR_CONFLICT ${nameOf(addedObject)} spec.workloadSelector.labels`],
      };
    }),
  },
  {
    name: 'the Secret of a Gateway is misspelt',
    only: 'validate',
    apply: change(['Gateway', 'tls.credentialName', networkingApiVersion], 'CREDENTIAL_NOT_FOUND', misspelt),
  },
  {
    name: 'two servers share a certificate',
    apply: (mesh) => {
      const object = mesh.find((one) => one.kind === 'Gateway' && one.metadata.name === 'front')!;
      const { servers } = object.spec as { servers: object[] };
      const [http, https, ...moreServers] = servers;
      const bothServers = [
        http,
        { ...https, hosts: ['www.example.org'] },
        { ...https, port: { number: 443, name: 'https-2', protocol: 'HTTPS' }, hosts: ['api.example.org'] },
        ...moreServers,
      ];
      const changedObject = changedAt(object, ['spec', 'servers'], bothServers) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`CERTIFICATE_SHARED ${nameOf(object)} spec.servers[2].tls`],
      };
    },
  },
  {
    name: 'ServiceEntries of one host give a port two protocols',
    apply: secondEntryOfHost({ number: 80, name: 'tcp', protocol: 'TCP' }, 'PORT_PROTOCOL_CONFLICT', 'protocol'),
  },
  {
    name: 'ServiceEntries of one host use a port name twice',
    apply: secondEntryOfHost({ number: 8081, name: 'http', protocol: 'HTTP' }, 'PORT_NAME_CONFLICT', 'name'),
  },
  {
    name: 'two services have one address',
    apply: addTo('ServiceEntry', (object) => {
      if (object.metadata.name !== 'machines') return undefined;
      const addedObject = {
        ...object,
        metadata: { ...object.metadata, name: 'machines-z' },
        spec: { ...(object.spec as object), hosts: ['zz.example.com'] },
      };
      return { added: addedObject, expected: [`ADDRESS_CONFLICT ${nameOf(addedObject)} spec.addresses[0]`] };
    }),
  },
  {
    name: 'the address of a WorkloadEntry is a host name',
    apply: change(['WorkloadEntry', 'spec.address'], 'HOST_NAME_ENDPOINT', () => 'vm.example.com'),
  },
  {
    name: 'a backend of an HTTPRoute is misspelt',
    apply: change(['HTTPRoute', 'backendRefs.name'], 'HOST_NOT_FOUND', misspelt, ancestorPath(1)),
  },
  {
    name: 'a port of a backend is shifted',
    apply: change(['HTTPRoute', 'backendRefs.port'], 'PORT_NOT_FOUND', (port: number) => port + 1, ancestorPath(1)),
  },
  {
    name: 'a parent of an HTTPRoute is misspelt',
    apply: change(['HTTPRoute', 'parentRefs.name'], 'GATEWAY_NOT_FOUND', misspelt, ancestorPath(1)),
  },
  {
    name: 'a listener of a parent is misspelt',
    apply: change(['HTTPRoute', 'parentRefs.sectionName'], 'NOT_PROGRAMMED', misspelt, ancestorPath(1)),
  },
  {
    name: 'no listener has the hostname of an HTTPRoute',
    apply: (mesh) => {
      const object = mesh.find(({ kind }) => kind === 'HTTPRoute')!;
      const changedObject = changedAt(object, ['spec', 'hostnames'], ['www.example.com']) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`NOT_PROGRAMMED ${nameOf(object)} spec.parentRefs[0]`],
      };
    },
  },
  {
    name: 'a backend is in another namespace, without a grant',
    apply: (mesh) => {
      const object = mesh.find(({ kind }) => kind === 'HTTPRoute')!;
      const other = otherNamespace(object.metadata.namespace);
      const changedObject = changedAt(object, ['spec', 'rules', 0, 'backendRefs', 0], {
        name: 'a',
        namespace: other,
        port: 80,
      }) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`REFERENCE_NOT_GRANTED ${nameOf(object)} spec.rules[0].backendRefs[0]`],
      };
    },
  },
  {
    name: 'the class of a Gateway is misspelt',
    apply: (mesh) => {
      const object = mesh.find((one) => one.kind === 'Gateway' && one.metadata.name === 'other')!;
      const changedObject = changedAt(object, ['spec', 'gatewayClassName'], 'itsio') as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`CLASS_NOT_FOUND ${nameOf(object)} spec.gatewayClassName`],
      };
    },
  },
  {
    name: 'the certificate of a listener is misspelt',
    only: 'validate',
    apply: change(
      ['Gateway', 'tls.certificateRefs.name', 'gateway.networking.k8s.io'],
      'CREDENTIAL_NOT_FOUND',
      misspelt,
      ancestorPath(1),
    ),
  },
  {
    name: 'the selector of a Service is misspelt',
    only: 'validate',
    apply: (mesh, draw) => {
      // A Service with EndpointSlices may select workloads elsewhere.
      if (mesh.some(({ kind }) => kind === 'EndpointSlice')) return undefined;
      const remainingObjects = mesh.filter(
        ({ kind, metadata }) =>
          !(kind === 'DestinationRule' && metadata.name !== 'external') &&
          !(kind === vs && metadata.name !== 'external' && metadata.name !== 'front' && metadata.name !== 'deep') &&
          kind !== 'PeerAuthentication',
      );
      return change(
        ['Service', 'selector.app'],
        'WORKLOAD_NOT_FOUND',
        (value: string) => `${value}x`,
        ancestorPath(1),
      )(remainingObjects, draw);
    },
  },
  {
    name: 'an annotation is misspelt',
    only: 'validate',
    apply: (mesh, draw) => {
      const object = draw.pick(mesh.filter(({ kind }) => kind === 'Service'));
      const metadata = { ...object.metadata, annotations: { 'networking.istio.io/exprotTo': '.' } };
      const expected = [`FIELD_WITHOUT_EFFECT ${nameOf(object)} metadata.annotations["networking.istio.io/exprotTo"]`];
      return { mesh: replaceObject(mesh, object, { ...object, metadata }), expected };
    },
  },
  ...(
    [
      'VirtualService',
      'DestinationRule',
      'Gateway',
      'ServiceEntry',
      'AuthorizationPolicy',
      'HTTPRoute',
      'Sidecar',
      'Telemetry',
    ] as const
  ).map(
    (kind): Mutation => ({
      name: `a field of a ${kind} is misspelt`,
      only: 'validate',
      apply: (mesh, draw) => {
        const objects = mesh.filter((one) => one.kind === kind);
        if (objects.length === 0) return undefined;
        const object = draw.pick(objects);
        const places = fieldsOf(object.spec as object);
        // The Gateway API ignores unknown fields. Without these fields, an object may refer to another one.
        const path = draw.pick(places.filter((one) => !/\b(?:namespace|allowedRoutes)\b/.test(text(one))));
        const renamedField = renamedAt(object, ['spec', ...path], draw);
        const at = text(['spec', ...path.slice(0, -1), renamedField.name]);
        return {
          mesh: replaceObject(mesh, object, renamedField.object),
          expected: [`FIELD_UNKNOWN ${nameOf(object)} ${at}`],
          rejected: nameOf(object),
        };
      },
    }),
  ),
];

/** Adds a ServiceEntry with this port for the hosts of the entry `external`. */
function secondEntryOfHost(port: object, code: string, field: string): Mutation['apply'] {
  return addTo('ServiceEntry', (object) => {
    if (object.metadata.name !== 'external') return undefined;
    const { hosts } = object.spec as { hosts: string[] };
    const addedObject = meshObject(networkingApiVersion, 'ServiceEntry', object.metadata.namespace, 'external-z', {
      spec: { hosts, location: 'MESH_EXTERNAL', resolution: 'DNS', ports: [port] },
    });
    return { added: addedObject, expected: [`${code} ${nameOf(addedObject)} spec.ports[0].${field}`] };
  });
}
