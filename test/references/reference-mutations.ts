/** Single invalid references of Sidecars, Ingresses, Services, policies and the mesh configuration. */
import { edgeNamespace, type MeshObject, meshSettings } from './consistent-mesh.ts';
import { change, changedAt, type Mutation, misspelt, nameOf, placesOf, replaceObject, text, vs } from './mutate.ts';

export const referenceMutations: readonly Mutation[] = [
  {
    name: 'an egress host of a Sidecar is misspelt',
    apply: (mesh, draw) => {
      const exact = placesOf(mesh, 'Sidecar', 'egress.hosts').filter(({ value }) => !String(value).includes('*'));
      if (exact.length === 0) return undefined;
      const { object, path, value } = draw.pick(exact);
      const writtenHost = `./${misspelt(String(value).slice('./'.length), draw)}`;
      const changedObject = changedAt(object, path, writtenHost) as typeof object;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`HOST_NOT_FOUND ${nameOf(object)} ${text(path)}`],
      };
    },
  },
  {
    name: 'the namespace of an egress host is another one',
    apply: (mesh, draw) => {
      const places = placesOf(mesh, 'Sidecar', 'egress.hosts').filter(({ value }) =>
        /^\.\/\w.*svc/.test(String(value)),
      );
      if (places.length === 0) return undefined;
      const { object, path, value } = draw.pick(places);
      const other = object.metadata.namespace === 'shop' ? 'bank' : 'shop';
      const changedObject = changedAt(object, path, String(value).replace('./', `${other}/`)) as typeof object;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`HOST_NOT_FOUND ${nameOf(object)} ${text(path)}`],
      };
    },
  },
  {
    name: 'a port of an egress listener is shifted',
    apply: change(['Sidecar', 'egress.port.number'], 'PORT_NOT_FOUND', (port: number) => port + 1),
  },
  {
    name: 'an ingress listener has the port of the Service',
    apply: (mesh, draw) => {
      const places = placesOf(mesh, 'Sidecar', 'ingress.port.number').filter(({ object: { metadata, spec } }) => {
        const { app } = (spec as { workloadSelector: { labels: { app: string } } }).workloadSelector.labels;
        const service = mesh.filter((one) => one.kind === 'Service' && one.metadata.namespace === metadata.namespace);
        const targets = placesOf(service, 'Service', 'ports.targetPort').filter(
          ({ object }) => object.metadata.name === app,
        );
        return targets.every(({ value }) => typeof value === 'number');
      });
      if (places.length === 0) return undefined;
      const { object, path } = draw.pick(places);
      const changedObject = changedAt(object, path, 80) as typeof object;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`SERVICE_PORT_IN_POLICY ${nameOf(object)} ${text(path)}`],
      };
    },
  },
  {
    name: 'the Service of an Ingress is misspelt',
    apply: change(['Ingress', 'backend.service.name'], 'HOST_NOT_FOUND', misspelt),
  },
  {
    name: 'a port number of an Ingress is shifted',
    apply: change(['Ingress', 'service.port.number'], 'PORT_NOT_FOUND', (port: number) => port + 1),
  },
  {
    name: 'a port name of an Ingress is misspelt',
    apply: change(['Ingress', 'service.port.name'], 'PORT_NOT_FOUND', misspelt),
  },
  {
    name: 'the Secret of an Ingress is misspelt',
    only: 'validate',
    apply: change(['Ingress', 'tls.secretName'], 'CREDENTIAL_NOT_FOUND', misspelt),
  },
  {
    name: 'a named target port is misspelt',
    apply: (mesh, draw) => {
      // Endpoints prove that the port exists.
      const namedPorts = placesOf(mesh, 'Service', 'ports.targetPort').filter(({ value }) => typeof value === 'string');
      if (namedPorts.length === 0) return undefined;
      const { object, path, value } = draw.pick(namedPorts);
      const { name, namespace } = object.metadata;
      const changedObject = changedAt(object, path, misspelt(String(value), draw)) as typeof object;
      const isDifferentSlice = ({ kind, metadata }: typeof object): boolean =>
        kind !== 'EndpointSlice' || metadata.namespace !== namespace || metadata.name !== `${name}-1`;
      return {
        mesh: replaceObject(mesh, object, changedObject).filter(isDifferentSlice),
        expected: [`PORT_NOT_FOUND ${nameOf(object)} ${text(path)}`],
      };
    },
  },
  ...['AuthorizationPolicy', 'RequestAuthentication'].map(
    (kind): Mutation => ({
      name: `the target of a ${kind} is misspelt`,
      apply: change([kind, 'targetRefs.name'], 'TARGET_NOT_FOUND', misspelt),
    }),
  ),
  {
    name: 'a rule names the port of the Service',
    apply: change(['AuthorizationPolicy', 'operation.ports'], 'SERVICE_PORT_IN_POLICY', () => '80'),
  },
  {
    name: 'a rule about paths names a TCP port',
    apply: (mesh, draw) => {
      const places = placesOf(mesh, 'AuthorizationPolicy', 'operation.ports').filter(({ object }) => {
        const { app } = (object.spec as { selector: { matchLabels: { app: string } } }).selector.matchLabels;
        const services = mesh.filter(({ kind, metadata }) => kind === 'Service' && metadata.name === app);
        const ownServices = services.filter(({ metadata }) => metadata.namespace === object.metadata.namespace);
        return placesOf(ownServices, 'Service', 'ports.port').some(({ value }) => value === 9000);
      });
      if (places.length === 0) return undefined;
      const { object, path } = draw.pick(places);
      const changedObject = changedAt(object, path, '9000') as typeof object;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`RULE_NEEDS_HTTP ${nameOf(object)} ${text(path.slice(0, 3))}`],
      };
    },
  },
  {
    name: 'a destination has a part of the host',
    apply: (mesh, draw) => {
      const suffix = '.svc.cluster.local';
      const places = placesOf(mesh, vs, 'route.destination.host').filter(({ value }) => String(value).endsWith(suffix));
      if (places.length === 0) return undefined;
      const { object, path, value } = draw.pick(places);
      const changedObject = changedAt(object, path, String(value).slice(0, -suffix.length)) as typeof object;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`HOST_NOT_FOUND ${nameOf(object)} ${text(path)}`],
      };
    },
  },
  {
    name: 'routes of a server that passes TLS through are http routes',
    apply: (mesh) => {
      const object = mesh.find(({ kind, metadata }) => kind === vs && metadata.name === 'pass')!;
      const { tls, ...spec } = object.spec as { tls: { route: object[] }[] };
      const changedObject = { ...object, spec: { ...spec, http: tls.map(({ route }) => ({ route })) } };
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`ROUTE_NOT_APPLIED ${nameOf(object)} spec.http`],
      };
    },
  },
  ...['tls', 'tcp'].map(
    (list): Mutation => ({
      name: `a port of a match of ${list} routes is shifted`,
      apply: change([vs, `${list}.match.port`], 'ROUTE_NOT_APPLIED', (port: number) => port + 1),
    }),
  ),
  {
    name: 'the host of a provider is misspelt',
    only: 'validate',
    apply: (mesh) => ({
      mesh: mesh.filter(({ kind }) => kind !== 'Telemetry'),
      meshSettings: changedAt(
        meshSettings,
        ['extensionProviders', 0, 'zipkin', 'service'],
        'aa.shop.svc.cluster.local',
      ) as object,
      expected: ['PROVIDER_UNREACHABLE mesh configuration extensionProviders[0].zipkin.service'],
    }),
  },
  {
    name: 'the port of a provider is shifted',
    only: 'validate',
    apply: (mesh) => {
      const policies = mesh.filter((one) => placesOf([one], 'AuthorizationPolicy', 'provider.name').length > 0);
      return {
        mesh,
        meshSettings: changedAt(meshSettings, ['extensionProviders', 1, 'envoyExtAuthzHttp', 'port'], 82) as object,
        expected: [
          'PROVIDER_UNREACHABLE mesh configuration extensionProviders[1].envoyExtAuthzHttp.port',
          ...policies.map((one) => `PROVIDER_UNREACHABLE ${nameOf(one)} spec.provider.name`),
        ],
      };
    },
  },
  {
    name: 'a default provider is misspelt',
    only: 'validate',
    apply: (mesh) => ({
      mesh,
      meshSettings: { ...meshSettings, defaultProviders: { tracing: ['samplr'] } },
      expected: ['PROVIDER_NOT_FOUND mesh configuration defaultProviders.tracing[0]'],
    }),
  },
  {
    name: 'a match is for clients with labels that no workload has',
    apply: (mesh, draw) => {
      const places = placesOf(mesh, vs, 'http.match.method');
      if (places.length === 0) return undefined;
      const { object, path } = draw.pick(places);
      const field = [...path.slice(0, -1), 'sourceLabels'];
      const changedObject = changedAt(object, field, { app: 'unknown' }) as typeof object;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`SOURCE_NOT_FOUND ${nameOf(object)} ${text(field)}`],
      };
    },
  },
  ...['from[0].source.namespaces', 'from[0].source.notNamespaces', 'when[0].values', 'when[0].notValues'].map(
    (field): Mutation => ({
      name: `the namespace of a rule is misspelt: ${field}`,
      apply: (mesh) => {
        const object = mesh.find((one) => one.kind === 'AuthorizationPolicy' && one.metadata.name === 'callers')!;
        const key = field.slice(field.lastIndexOf('.') + 1);
        const rule = field.startsWith('when')
          ? { when: [{ key: 'source.namespace', [key]: ['shopp'] }] }
          : { from: [{ source: { [key]: ['shopp'] } }] };
        const changedObject = changedAt(object, ['spec', 'rules'], [rule]) as typeof object;
        const names = ['kube-system', 'shop', 'bank', edgeNamespace];
        const objects = names.map(
          (name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }) as MeshObject,
        );
        return {
          mesh: [...replaceObject(mesh, object, changedObject), ...objects],
          expected: [`SOURCE_NOT_FOUND ${nameOf(object)} spec.rules[0].${field}[0]`],
        };
      },
    }),
  ),
  {
    name: 'a patch of a workload with a sidecar is for gateways',
    only: 'validate',
    apply: (mesh) => {
      const object = mesh.find(({ kind }) => kind === 'EnvoyFilter');
      // Deployments do not show whether a sidecar is injected.
      if (object === undefined || !mesh.some(({ kind }) => kind === 'Pod')) return undefined;
      const path = ['spec', 'configPatches', 0];
      const changedObject = changedAt(object, [...path, 'match', 'context'], 'GATEWAY') as typeof object;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`PATCH_NOT_APPLIED ${nameOf(object)} ${text(path)}`],
      };
    },
  },
  {
    name: 'the domain of a destination is misspelt',
    apply: (mesh, draw) => {
      const suffix = '.cluster.local';
      const places = placesOf(mesh, vs, 'route.destination.host').filter(({ value }) => String(value).endsWith(suffix));
      if (places.length === 0) return undefined;
      const { object, path, value } = draw.pick(places);
      const changedObject = changedAt(object, path, String(value).replace(suffix, '.cluster.lokal')) as typeof object;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`HOST_NOT_FOUND ${nameOf(object)} ${text(path)}`],
      };
    },
  },
];
