import { describe, expect, it } from 'vitest';
import { type GivenOptions, givenMesh, givenProxy } from '../../../test/fixtures/given-mesh.ts';
import type { Service } from '../services/service.ts';
import type { PushContext } from './push-context.ts';

const object = (kind: string, id: string, spec: string): string => {
  const [namespace, name] = id.split('/');
  return `---\napiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`;
};

const service = (id: string, host: string, extraSpec = ''): string =>
  object(
    'ServiceEntry',
    id,
    `{hosts: [${host}], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}]${extraSpec}}`,
  );

const rule = (id: string, host: string, extraSpec = ''): string =>
  object('DestinationRule', id, `{host: ${host}${extraSpec}}`);

const route = (id: string, host: string, extraSpec = ''): string =>
  object('VirtualService', id, `{hosts: [${host}], http: [{route: [{destination: {host: reviews}}]}]${extraSpec}}`);

function contextOf(yaml: string, options?: GivenOptions): PushContext {
  return givenMesh(yaml, options).context;
}

function serviceOf(context: PushContext, host: string, namespace: string): Service {
  const firstService = context.servicesOf(host, namespace)[0];
  if (firstService === undefined) throw new Error(`no service ${host} in ${namespace}`);
  return firstService;
}

describe('services in a push context', () => {
  const context = contextOf(
    service('a/all', 'all.b') +
      service('a/own', 'own.b', ', exportTo: ["."]') +
      service('a/friend', 'friend.b', ', exportTo: [b]') +
      service('a/nobody', 'nobody.b', ', exportTo: ["~"]'),
  );

  it.each([
    ['a', ['all.b', 'own.b']],
    ['b', ['all.b', 'friend.b']],
    ['c', ['all.b']],
  ])('are visible to namespace %s according to exportTo', (namespace, hosts) => {
    expect(context.servicesVisibleTo(namespace).map(({ hostname }) => hostname)).toEqual(hosts);
  });

  it("are resolved by name to the client namespace's service, or else to the oldest visible service", () => {
    const sharedContext = contextOf(
      service('a/s', 'x.b') + service('b/s', 'x.b') + service('c/s', 'x.b', ', exportTo: ["."]'),
    );
    const meaning = (namespace: string): string | undefined => sharedContext.serviceFor('x.b', namespace)?.namespace;
    expect([meaning('a'), meaning('b'), meaning('c'), meaning('d')]).toEqual(['a', 'b', 'c', 'a']);
  });

  it('are exported according to the mesh default if they have no exportTo', () => {
    const closedContext = contextOf(service('a/s', 'x.b'), { meshConfig: 'defaultServiceExportTo: ["."]' });
    expect(closedContext.servicesVisibleTo('b')).toEqual([]);
    expect(closedContext.servicesVisibleTo('a')).toHaveLength(1);
  });
});

describe('the destination rule of a service', () => {
  const names = (context: PushContext, client: string, host: string, namespace: string, labels = {}): string[] =>
    (context.destinationRuleFor(client, serviceOf(context, host, namespace), labels)?.origins ?? []).map(
      (key) => `${key.namespace}/${key.name}`,
    );

  it('is the one in the client namespace, or else the service namespace, or else the root namespace', () => {
    const all =
      service('svc/s', 'x.b') + rule('client/c', 'x.b') + rule('svc/s', 'x.b') + rule('istio-system/r', 'x.b');
    const context = contextOf(all);
    expect(names(context, 'client', 'x.b', 'svc')).toEqual(['client/c']);
    expect(names(context, 'other', 'x.b', 'svc')).toEqual(['svc/s']);
    expect(names(contextOf(all.replace(rule('svc/s', 'x.b'), '')), 'other', 'x.b', 'svc')).toEqual(['istio-system/r']);
  });

  it('is, for clients in the root namespace, the one in the service namespace rather than the mesh-wide default', () => {
    const context = contextOf(service('svc/s', 'x.b') + rule('istio-system/r', 'x.b') + rule('svc/s', 'x.b'));
    expect(names(context, 'istio-system', 'x.b', 'svc')).toEqual(['svc/s']);
    const private_ = contextOf(
      service('svc/s', 'x.b') + rule('istio-system/r', 'x.b', ', exportTo: ["."]') + rule('svc/s', 'x.b'),
    );
    expect(names(private_, 'istio-system', 'x.b', 'svc')).toEqual(['istio-system/r']);
  });

  it('is the most specific rule', () => {
    const context = contextOf(service('a/s', 'x.y.b') + rule('a/wide', '"*.b"') + rule('a/mid', '"*.y.b"'));
    expect(names(context, 'a', 'x.y.b', 'a')).toEqual(['a/mid']);
  });

  it('respects exportTo', () => {
    const context = contextOf(service('a/s', 'x.b') + rule('a/s', 'x.b', ', exportTo: ["."]'));
    expect(names(context, 'a', 'x.b', 'a')).toEqual(['a/s']);
    expect(names(context, 'b', 'x.b', 'a')).toEqual([]);
  });

  it('is the one that selects the workload rather than another rule of the namespace', () => {
    const context = contextOf(
      service('a/s', 'x.b') +
        rule('a/all', 'x.b') +
        rule('a/some', 'x.b', ', workloadSelector: {matchLabels: {app: web}}'),
    );
    expect(names(context, 'a', 'x.b', 'a', { app: 'web' })).toEqual(['a/some']);
    expect(names(context, 'a', 'x.b', 'a', { app: 'db' })).toEqual(['a/all']);
    expect(names(context, 'b', 'x.b', 'a', { app: 'web' })).toEqual(['a/all']);
  });

  it('is the one for the exact host, even if a wildcard rule selects the workload', () => {
    const selectingRule = (name: string, host: string): string =>
      rule(name, host, ', workloadSelector: {matchLabels: {app: web}}');
    const web = { app: 'web' };
    const exact = contextOf(service('a/s', 'x.y.b') + rule('a/exact', 'x.y.b') + selectingRule('a/wide', '"*.b"'));
    expect(names(exact, 'a', 'x.y.b', 'a', web)).toEqual(['a/exact']);
    const narrower = contextOf(service('a/s', 'x.y.b') + rule('a/wide', '"*.b"') + selectingRule('a/mid', '"*.y.b"'));
    expect(names(narrower, 'a', 'x.y.b', 'a', web)).toEqual(['a/mid']);
    const otherNamespace = contextOf(
      service('b/s', 'x.y.b') + rule('b/exact', 'x.y.b') + selectingRule('a/wide', '"*.b"'),
    );
    expect(names(otherNamespace, 'a', 'x.y.b', 'b', web)).toEqual(['a/wide']);
  });

  it('is merged from all rules for the host, with all subsets and the first traffic policy', () => {
    const context = contextOf(
      service('a/s', 'reviews.a.svc.cluster.local') +
        rule('a/one', 'reviews', ', subsets: [{name: v1, labels: {v: "1"}}]') +
        rule(
          'a/two',
          'reviews.a.svc.cluster.local',
          ', trafficPolicy: {tls: {mode: DISABLE}}, subsets: [{name: v1, labels: {v: other}}, {name: v2}]',
        ) +
        rule('a/three', 'reviews', ', trafficPolicy: {tls: {mode: SIMPLE}}'),
    );
    const mergedRule = context.destinationRuleFor('a', serviceOf(context, 'reviews.a.svc.cluster.local', 'a'));
    expect(mergedRule?.config.name).toBe('one');
    expect(mergedRule?.origins.map(({ name }) => name)).toEqual(['one', 'two', 'three']);
    expect(mergedRule?.config.spec).toEqual({
      host: 'reviews.a.svc.cluster.local',
      subsets: [{ name: 'v1', labels: { v: '1' } }, { name: 'v2' }],
      trafficPolicy: { tls: { mode: 'DISABLE' } },
    });
    expect(context.destinationRuleFor('b', serviceOf(context, 'reviews.a.svc.cluster.local', 'a'))).toBe(mergedRule);
  });
});

describe('virtual services in a push context', () => {
  it('are found by gateway and visibility, with resolved names', () => {
    const context = contextOf(
      route('a/mesh', 'reviews') +
        route('a/both', 'x.b', ', gateways: [mesh, gw]') +
        route('b/theirs', 'y.b', ', gateways: [a/gw], exportTo: ["."]'),
    );
    const names = (gateway: string, namespace: string): string[] =>
      context.virtualServicesFor(gateway, namespace).map(({ config }) => config.name);
    expect(names('mesh', 'z')).toEqual(['mesh', 'both']);
    expect(names('a/gw', 'z')).toEqual(['both']);
    expect(names('a/gw', 'b')).toEqual(['theirs', 'both']);
    const [first] = context.virtualServicesFor('mesh', 'z');
    expect(first?.config.spec).toMatchObject({
      hosts: ['reviews.a.svc.cluster.local'],
      gateways: ['mesh'],
      http: [{ route: [{ destination: { host: 'reviews.a.svc.cluster.local' } }] }],
    });
  });

  it('contain the routes of their delegates, and list the delegates as origins', () => {
    const root = object(
      'VirtualService',
      'a/root',
      '{hosts: [x.b], http: [{match: [{uri: {prefix: /api}}], delegate: {name: leaf, namespace: b}}, {delegate: {name: gone}}]}',
    );
    const leaf = object(
      'VirtualService',
      'b/leaf',
      '{http: [{match: [{uri: {prefix: /api/v1}}], route: [{destination: {host: svc}}]}]}',
    );
    const context = contextOf(root + leaf);
    const [resolved, ...otherServices] = context.virtualServicesFor('mesh', 'z');
    expect(otherServices).toEqual([]);
    expect(resolved?.config.spec.http).toEqual([
      { match: [{ uri: { prefix: '/api/v1' } }], route: [{ destination: { host: 'svc.b.svc.cluster.local' } }] },
    ]);
    expect(resolved?.origins.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([
      'a/root',
      'b/leaf',
      'a/gone',
    ]);
  });

  it('do not contain routes of a delegate that is not exported to them', () => {
    const root = object('VirtualService', 'a/root', '{hosts: [x.b], http: [{delegate: {name: leaf, namespace: b}}]}');
    const leaf = object('VirtualService', 'b/leaf', '{exportTo: ["."], http: [{route: [{destination: {host: svc}}]}]}');
    expect(contextOf(root + leaf).virtualServicesFor('mesh', 'a')[0]?.config.spec.http).toEqual([]);
  });
});

describe('gateways of a proxy', () => {
  const server = 'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]';
  const context = contextOf(
    object('Gateway', 'a/one', `{selector: {istio: ingress}, ${server}}`) +
      object('Gateway', 'b/two', `{selector: {istio: egress}, ${server}}`) +
      object('Gateway', 'c/all', `{${server}}`),
  );

  it("are all gateways whose selector matches the proxy's labels, in any namespace", () => {
    const router = givenProxy({ type: 'router', labels: { istio: 'ingress', app: 'x' } });
    expect(context.gatewaysFor(router).map(({ name }) => name)).toEqual(['one', 'all']);
  });

  it('are empty for a sidecar', () => {
    expect(context.gatewaysFor(givenProxy({ labels: { istio: 'ingress' } }))).toEqual([]);
  });
});

describe('service targets of a proxy', () => {
  it("are found by the proxy's addresses among the endpoints", () => {
    const context = contextOf(
      object(
        'ServiceEntry',
        'a/s',
        '{hosts: [x.b, y.b], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1, ports: {http: 8080}}, {address: 10.0.0.2}]}',
      ),
    );
    const targets = context.serviceTargetsOf(givenProxy({ ip: '10.0.0.1', namespace: 'a' }));
    expect(targets.map(({ service: { hostname }, port, targetPort }) => [hostname, port.number, targetPort])).toEqual([
      ['x.b', 80, 8080],
      ['y.b', 80, 8080],
    ]);
    expect(context.serviceTargetsOf(givenProxy({ ip: '10.0.0.3', namespace: 'a' }))).toEqual([]);
    expect(context.serviceTargetsOf(givenProxy({ ip: '10.0.0.1', namespace: 'b' }))).toEqual([]);
  });

  it("are found by the proxy's labels if a ServiceEntry in its namespace selects these", () => {
    const context = contextOf(
      object(
        'ServiceEntry',
        'a/s',
        '{hosts: [x.b], resolution: STATIC, workloadSelector: {labels: {app: web}}, ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]}',
      ),
    );
    expect(context.serviceTargetsOf(givenProxy({ namespace: 'a', labels: { app: 'web' } }))).toMatchObject([
      { targetPort: 8080 },
    ]);
    expect(context.serviceTargetsOf(givenProxy({ namespace: 'b', labels: { app: 'web' } }))).toEqual([]);
  });
});

describe('policies of a workload', () => {
  const policy = (kind: string, id: string, spec = '{}'): string =>
    object(kind, id, spec).replace('networking.istio.io/v1', `${groupOf[kind]}`);
  const groupOf: Readonly<Record<string, string>> = {
    PeerAuthentication: 'security.istio.io/v1',
    RequestAuthentication: 'security.istio.io/v1',
    AuthorizationPolicy: 'security.istio.io/v1',
    Telemetry: 'telemetry.istio.io/v1',
    WasmPlugin: 'extensions.istio.io/v1alpha1',
    EnvoyFilter: 'networking.istio.io/v1alpha3',
  };
  const web = givenProxy({ namespace: 'a', labels: { app: 'web' } });
  const names = (configs: readonly { readonly name: string }[]): string[] => configs.map(({ name }) => name);

  it('are the policies of each kind that select the workload, in one object as long as the policies do not change', () => {
    const yaml =
      policy('PeerAuthentication', 'istio-system/mesh', '{mtls: {mode: STRICT}}') +
      policy('PeerAuthentication', 'a/web', '{selector: {matchLabels: {app: web}}}') +
      policy('RequestAuthentication', 'a/jwt') +
      policy('AuthorizationPolicy', 'a/allow') +
      policy('AuthorizationPolicy', 'a/other', '{selector: {matchLabels: {app: other}}}') +
      policy('Telemetry', 'istio-system/mesh') +
      policy('WasmPlugin', 'a/code', '{url: "file:///x.wasm"}') +
      policy('EnvoyFilter', 'a/late', '{priority: 5, configPatches: []}') +
      policy('EnvoyFilter', 'a/early', '{configPatches: []}');
    const previous = givenMesh(yaml);
    const policies = previous.context.policiesFor(web);
    expect(names(policies.peerAuthentications)).toEqual(['mesh', 'web']);
    expect(names(policies.requestAuthentications)).toEqual(['jwt']);
    expect(names(policies.authorizationPolicies)).toEqual(['allow']);
    expect(names(policies.telemetries)).toEqual(['mesh']);
    expect(names(policies.wasmPlugins)).toEqual(['code']);
    expect(names(policies.envoyFilters)).toEqual(['early', 'late']);
    const other = givenProxy({ namespace: 'a', labels: { app: 'other' } });
    expect(names(previous.context.policiesFor(other).authorizationPolicies)).toEqual(['allow', 'other']);
    expect(previous.context.policiesFor(other).id).not.toBe(policies.id);

    const changedKeys = [{ kind: 'AuthorizationPolicy', namespace: 'b', name: 'new' }];
    const nextMesh = givenMesh(yaml + policy('AuthorizationPolicy', 'b/new'), {
      previous: { ...previous, changed: changedKeys },
    });
    expect(nextMesh.context.policiesFor(web)).toBe(policies);
    expect(nextMesh.context.policiesFor({ ...web })).toBe(policies);
    const withAdded = givenMesh(yaml + policy('AuthorizationPolicy', 'a/new'), {
      previous: { ...previous, changed: [{ ...changedKeys[0]!, namespace: 'a' }] },
    });
    expect(withAdded.context.policiesFor(web)).not.toBe(policies);
    expect(withAdded.context.policiesFor(web).id).not.toBe(policies.id);
    expect(names(withAdded.context.policiesFor(web).authorizationPolicies)).toEqual(['allow', 'new']);
    // The result stays the same object after other contexts were built.
    expect(givenMesh(yaml, { previous: { ...previous, changed: changedKeys } }).context.policiesFor(web)).toBe(
      policies,
    );
  });

  it('are one shared empty object if no policies apply', () => {
    const { context } = givenMesh(policy('AuthorizationPolicy', 'b/x'));
    expect(context.policiesFor(web).id).toBe('');
    expect(context.policiesFor(web)).toBe(contextOf('').policiesFor(givenProxy({ type: 'router' })));
  });

  it('include, for a router, policies attached to a Gateway that it implements', () => {
    const target = (group: string): string => `{targetRefs: [{group: ${group}, kind: Gateway, name: gw}]}`;
    const server = '{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}';
    const yaml =
      policy('AuthorizationPolicy', 'a/ours', target('networking.istio.io')) +
      policy('AuthorizationPolicy', 'a/api', target('gateway.networking.k8s.io')) +
      policy('Telemetry', 'a/attached', target('networking.istio.io')) +
      policy('Telemetry', 'a/all') +
      object('Gateway', 'a/gw', `{selector: {app: edge}, servers: [${server}]}`);
    const { context } = givenMesh(yaml);
    const policyNames = (type: 'router' | 'sidecar', labels: Record<string, string>) => {
      const { authorizationPolicies, telemetries } = context.policiesFor(givenProxy({ type, namespace: 'a', labels }));
      return [names(authorizationPolicies), names(telemetries)];
    };
    expect(policyNames('router', { app: 'edge' })).toEqual([['ours'], ['all', 'attached']]);
    expect(policyNames('router', { app: 'other' })).toEqual([[], ['all']]);
    expect(policyNames('sidecar', { app: 'edge' })).toEqual([[], ['all']]);
    expect(policyNames('router', { 'gateway.networking.k8s.io/gateway-name': 'gw' })).toEqual([['api'], ['all']]);
  });

  it('change with the Gateway objects that a router implements', () => {
    const target = '{targetRefs: [{group: networking.istio.io, kind: Gateway, name: gw}]}';
    const gateway = (app: string): string =>
      object(
        'Gateway',
        'a/gw',
        `{selector: {app: ${app}}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}`,
      );
    const previous = givenMesh(policy('AuthorizationPolicy', 'a/p', target) + gateway('edge'));
    const changedKeys = [{ kind: 'Gateway', namespace: 'a', name: 'gw' }];
    const nextMesh = givenMesh(policy('AuthorizationPolicy', 'a/p', target) + gateway('other'), {
      previous: { ...previous, changed: changedKeys },
    });
    const edge = givenProxy({ type: 'router', namespace: 'a', labels: { app: 'edge' } });
    expect(names(previous.context.policiesFor(edge).authorizationPolicies)).toEqual(['p']);
    expect(nextMesh.context.policiesFor(edge).id).toBe('');
  });

  it("determine the mTLS mode of the workload's connections", () => {
    const yaml =
      policy('PeerAuthentication', 'istio-system/mesh', '{mtls: {mode: STRICT}}') +
      policy(
        'PeerAuthentication',
        'a/web',
        '{selector: {matchLabels: {app: web}}, portLevelMtls: {"81": {mode: DISABLE}}}',
      );
    const previous = givenMesh(yaml);
    const modes = previous.context.peerModesFor('a', { app: 'web' });
    expect(modes).toEqual({ mode: 'STRICT', ports: new Map([[81, 'DISABLE']]) });
    expect(previous.context.peerModesFor('b', {})).toEqual({ mode: 'STRICT', ports: new Map() });
    expect(contextOf('').peerModesFor('a', {})).toEqual({ mode: 'PERMISSIVE', ports: new Map() });
    const changedKeys = [{ kind: 'PeerAuthentication', namespace: 'b', name: 'x' }];
    const nextMesh = givenMesh(yaml + policy('PeerAuthentication', 'b/x', '{mtls: {mode: DISABLE}}'), {
      previous: { ...previous, changed: changedKeys },
    });
    expect(nextMesh.context.peerModesFor('a', { app: 'web' })).toBe(modes);
    expect(nextMesh.context.peerModesFor('b', {}).mode).toBe('DISABLE');
  });
});

describe('short names in a push context', () => {
  const yaml = route('a/v', 'reviews') + rule('a/r', 'reviews') + service('a/plain', 'reviews.a');
  const kubernetesName = 'reviews.a.svc.cluster.local';
  const withService = yaml + service('a/full', kubernetesName);
  const changedKeys = [{ kind: 'ServiceEntry', namespace: 'a', name: kubernetesName }];

  function meaningsIn(context: PushContext): (string | undefined)[] {
    const [virtualService] = context.virtualServicesFor('mesh', 'a');
    const { hosts, http } = virtualService!.config.spec;
    const ruled = [kubernetesName, 'reviews.a'].filter((host) => {
      const [knownService] = context.servicesOf(host, 'a');
      return knownService !== undefined && context.destinationRuleFor('a', knownService) !== undefined;
    });
    return [...hosts, http?.[0]?.route?.[0]?.destination.host, ...ruled];
  }

  it('are qualified as in Kubernetes, even if the service does not exist', () => {
    expect(meaningsIn(contextOf(yaml))).toEqual([kubernetesName, kubernetesName]);
    expect(meaningsIn(contextOf(withService))).toEqual([kubernetesName, kubernetesName, kubernetesName]);
  });

  it('are qualified without Kubernetes only while a service has that name', () => {
    const withoutKubernetes = givenMesh(yaml, { kubernetes: false });
    expect(meaningsIn(withoutKubernetes.context)).toEqual(['reviews.a', 'reviews.a', 'reviews.a']);
    const withAdded = givenMesh(withService, {
      kubernetes: false,
      previous: { ...withoutKubernetes, changed: changedKeys },
    });
    expect(meaningsIn(withAdded.context)).toEqual([kubernetesName, kubernetesName, kubernetesName]);
    expect(withAdded.context.renamedConfigKeys.map(({ kind, name }) => `${kind}/${name}`)).toEqual([
      'VirtualService/v',
      'DestinationRule/r',
    ]);
    const withRemoved = givenMesh(yaml, { kubernetes: false, previous: { ...withAdded, changed: changedKeys } });
    expect(meaningsIn(withRemoved.context)).toEqual(['reviews.a', 'reviews.a', 'reviews.a']);
    expect(withRemoved.context.renamedConfigKeys).toHaveLength(2);
  });

  it('keep their meaning and derived objects when other services are added and removed', () => {
    const previous = givenMesh(yaml, { kubernetes: false });
    const other = [{ kind: 'ServiceEntry', namespace: 'a', name: 'x.b' }];
    const nextMesh = givenMesh(yaml + service('a/x', 'x.b'), {
      kubernetes: false,
      previous: { ...previous, changed: other },
    });
    expect(nextMesh.context.renamedConfigKeys).toEqual([]);
    expect(nextMesh.context.virtualServicesFor('mesh', 'a')[0]).toBe(
      previous.context.virtualServicesFor('mesh', 'a')[0],
    );
  });

  it('are resolved for a delegate in its own namespace, and again after changes', () => {
    const delegating =
      object('VirtualService', 'a/root', '{hosts: [x.b], http: [{delegate: {name: part, namespace: b}}]}') +
      object('VirtualService', 'b/part', '{http: [{route: [{destination: {host: reviews}}]}]}');
    const led = ({ context }: { context: PushContext }) =>
      context.virtualServicesFor('mesh', 'a')[0]!.config.spec.http![0]!.route![0]!.destination.host;
    const previous = givenMesh(delegating, { kubernetes: false });
    expect(led(previous)).toBe('reviews.b');
    const host = 'reviews.b.svc.cluster.local';
    const addedKeys = [{ kind: 'ServiceEntry', namespace: 'b', name: host }];
    const nextMesh = givenMesh(delegating + service('b/full', host), {
      kubernetes: false,
      previous: { ...previous, changed: addedKeys },
    });
    expect(led(nextMesh)).toBe(host);
  });

  it('apply to the egress proxy in a Sidecar object, and are resolved again when a Service with the name is added', () => {
    const policy = '{mode: ALLOW_ANY, egressProxy: {host: reviews, port: {number: 80}}}';
    const sidecar = object('Sidecar', 'a/own', `{outboundTrafficPolicy: ${policy}}`);
    const proxy = givenProxy({ namespace: 'a' });
    const previous = givenMesh(sidecar, { kubernetes: false });
    const proxied = ({ context }: { context: PushContext }) =>
      context.sidecarScopeFor(proxy).outboundTrafficPolicy.egressProxy?.host;
    expect(proxied(previous)).toBe('reviews.a');
    const nextMesh = givenMesh(sidecar + service('a/full', kubernetesName), {
      kubernetes: false,
      previous: { ...previous, changed: changedKeys },
    });
    expect(proxied(nextMesh)).toBe(kubernetesName);
    expect(nextMesh.context.renamedConfigKeys).toEqual([{ kind: 'Sidecar', namespace: 'a', name: 'own' }]);
  });
});

describe('a push context built from the previous one', () => {
  const base = service('a/s', 'x.b') + route('a/v', 'x.b') + rule('a/r', 'x.b');

  it('reuses unchanged parts and indexes changed ones', () => {
    const previous = givenMesh(base);
    const proxy = givenProxy();
    const scopeBefore = previous.context.sidecarScopeFor(proxy);
    const changedKeys = [{ kind: 'Gateway', namespace: 'a', name: 'g' }];
    const server = 'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]';
    const nextMesh = givenMesh(base + object('Gateway', 'a/g', `{${server}}`), {
      previous: { ...previous, changed: changedKeys },
    });
    expect(nextMesh.context.sidecarScopeFor(proxy)).toBe(scopeBefore);
    expect(nextMesh.context.gatewaysFor(givenProxy({ type: 'router' })).map(({ name }) => name)).toEqual(['g']);
  });

  it('rebuilds scopes if their inputs change', () => {
    const previous = givenMesh(base);
    const changedKeys = [{ kind: 'VirtualService', namespace: 'a', name: 'w' }];
    const nextMesh = givenMesh(base + route('a/w', 'z.b'), { previous: { ...previous, changed: changedKeys } });
    const names = (context: PushContext): string[] =>
      context.sidecarScopeFor(givenProxy()).egressListeners[0]!.virtualServices.map(({ config }) => config.name);
    expect(names(previous.context)).toEqual(['v']);
    expect(names(nextMesh.context)).toEqual(['v', 'w']);
  });

  it('indexes everything again if the mesh configuration changes', () => {
    const previous = givenMesh(base);
    const nextMesh = givenMesh(base, {
      meshConfig: 'outboundTrafficPolicy: {mode: REGISTRY_ONLY}',
      previous: { ...previous, changed: [] },
    });
    expect(nextMesh.context.sidecarScopeFor(givenProxy()).outboundTrafficPolicy).toEqual({ mode: 'REGISTRY_ONLY' });
  });
});
