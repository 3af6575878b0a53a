import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { Config } from '../../model/config/config.ts';
import { clusterType, secretType } from '../../networking/index.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { SecretAccess } from '../secrets/secret-access.ts';
import { type MeshNode, MeshResources } from './mesh-resources.ts';

const authority = createAuthority();

function secret(namespace: string, name: string): Config {
  const { certificate, privateKey } = authority.issue([`${name}.test`]);
  return givenObject('Secret', namespace, name, {
    type: 'kubernetes.io/tls',
    data: {},
    stringData: { 'tls.crt': certificate, 'tls.key': privateKey },
  });
}

const names = ['kubernetes://one', 'kubernetes://two', 'kubernetes://shop/one'];

function secretVersions(node: MeshNode, requestedNames: readonly string[] = names): Map<string, string> {
  return new Map([...node.get(secretType, requestedNames)!.resources].map(([name, { version }]) => [name, version]));
}

describe('Secrets of a namespace', () => {
  const world = new GivenWorld([secret('edge', 'one'), secret('edge', 'two'), secret('shop', 'one')]);
  const gateway = (identity?: string): MeshNode => {
    const openedNode = world.resources.openNode({
      id: 'router~10.9.0.1~front.edge~edge.svc.cluster.local',
      cluster: 'front',
      metadata: { NAMESPACE: 'edge' },
      ...(identity !== undefined && { verifiedIdentity: identity }),
    });
    if ('error' in openedNode) throw new Error(openedNode.error);
    return openedNode.resources as MeshNode;
  };

  it('are served to gateways with a verified identity of the same namespace', () => {
    expect([...secretVersions(gateway('spiffe://cluster.local/ns/edge/sa/front')).keys()]).toEqual(names.slice(0, 2));
  });

  it('are served to no other clients', () => {
    expect(secretVersions(gateway()).size).toBe(0);
    expect(secretVersions(gateway('spiffe://cluster.local/ns/shop/sa/front')).size).toBe(0);
    expect(secretVersions(gateway('somebody')).size).toBe(0);
  });
});

describe('a changed Secret', () => {
  it('is pushed to gateways of its namespace, without changing other Secrets', () => {
    const world = new GivenWorld([secret('edge', 'one'), secret('edge', 'two')]);
    const edge = world.connect('10.9.0.1', { namespace: 'edge', type: 'router', secrets: true });
    const shop = world.connect('10.9.0.2', { namespace: 'shop', type: 'router', secrets: true });
    const previous = secretVersions(edge);
    secretVersions(shop);
    const encodingsBefore = world.encodings;
    const change = world.put(secret('edge', 'one'));
    expect(shop.typesToPush(change, [clusterType, secretType])).toEqual([]);
    expect(edge.typesToPush(change, [clusterType, secretType])).toEqual([secretType]);
    const versionsAfter = secretVersions(edge);
    expect(versionsAfter.get('kubernetes://one')).not.toBe(previous.get('kubernetes://one'));
    expect(versionsAfter.get('kubernetes://two')).toBe(previous.get('kubernetes://two'));
    expect(world.encodings - encodingsBefore).toBe(1);
  });
});

describe('CA certificates', () => {
  const [first, secondAuthority] = [createAuthority('first'), createAuthority('second')];
  const roots = (authority: typeof first): object => ({ 'ca.crt': authority.certificate });
  const inSecret = (name: string, authority: typeof first): Config =>
    givenObject('Secret', 'edge', name, { type: 'Opaque', data: {}, stringData: roots(authority) });
  const inConfigMap = (authority: typeof first): Config =>
    givenObject('ConfigMap', 'edge', 'ca', { data: roots(authority), binaryData: {} });
  const versionOf = (node: MeshNode, name: string): string | undefined => {
    return node.get(secretType, [name])!.resources.get(name)?.version;
  };

  it('change with their ConfigMap, or with a Secret that contains only CA certificates', () => {
    const world = new GivenWorld([inConfigMap(first), inSecret('web', first)]);
    const gatewayFields = { namespace: 'edge', type: 'router', secrets: true } as const;
    const node = world.connect('10.9.0.1', gatewayFields);
    const names = ['configmap://ca-cacert', 'kubernetes://web-cacert'];
    const previous = names.map((name) => versionOf(node, name));
    const changedObjects = [inConfigMap(secondAuthority), inSecret('web-cacert', secondAuthority)];
    const versionsAfter = changedObjects.map((config, index) => {
      expect(node.typesToPush(world.put(config), [secretType])).toEqual([secretType]);
      return versionOf(node, names[index]!);
    });
    const rebuilt = new GivenWorld([
      inConfigMap(secondAuthority),
      inSecret('web', first),
      inSecret('web-cacert', secondAuthority),
    ]);
    expect(versionsAfter).toEqual(names.map((name) => versionOf(rebuilt.connect('10.9.0.1', gatewayFields), name)));
    for (const index of [0, 1]) expect(versionsAfter[index]).not.toBe(previous[index]);
  });
});

describe('clusters of a gateway', () => {
  const service = (host: string): Config =>
    givenObject('ServiceEntry', 'edge', host, {
      hosts: [host],
      resolution: 'STATIC',
      location: 'MESH_INTERNAL',
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      endpoints: [{ address: '10.1.1.1', labels: {} }],
    });
  const gateway = givenObject('Gateway', 'edge', 'front', {
    selector: {},
    servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*/*'] }],
  });
  const virtualService = (to: string): Config =>
    givenObject('VirtualService', 'edge', 'web', {
      hosts: ['web.test'],
      gateways: ['front'],
      http: [{ route: [{ destination: { host: to } }] }],
    });
  const objects = [service('a.test'), service('b.test'), gateway, virtualService('a.test')];
  const clusters = (node: MeshNode): string[] =>
    [...node.get(clusterType, '*')!.resources.keys()].filter((name) => name.startsWith('outbound'));

  it('are those that its VirtualServices refer to', () => {
    const world = new GivenWorld(objects, undefined, undefined, { onlyReferencedClusters: true });
    const node = world.connect('10.9.0.1', { namespace: 'edge', type: 'router' });
    expect(clusters(node)).toEqual(['outbound|80||a.test']);
    const change = world.put(virtualService('b.test'));
    expect(node.typesToPush(change, [clusterType])).toEqual([clusterType]);
    expect(clusters(node)).toEqual(['outbound|80||b.test']);
  });

  it('are all clusters if the option to filter them is disabled', () => {
    const node = new GivenWorld(objects).connect('10.9.0.1', { namespace: 'edge', type: 'router' });
    expect(clusters(node)).toEqual(['outbound|80||a.test', 'outbound|80||b.test']);
  });
});

describe('access to Secrets', () => {
  const world = new GivenWorld([
    secret('edge', 'one'),
    givenObject('ConfigMap', 'edge', 'ca', { data: { 'ca.crt': authority.certificate }, binaryData: {} }),
  ]);
  const requestedNames = ['configmap://ca-cacert', 'kubernetes://one'];
  const access = new SecretAccess({
    server: { request: () => Promise.reject(new Error('not asked here')) },
    log: silentLogger,
  });
  const requestedAccounts: string[][] = [];
  access.watch((accounts) => requestedAccounts.push(accounts));
  const resources = new MeshResources({ context: () => world.state.context, cache: world.cache, secretAccess: access });
  const gateway = (nodeFields: object): MeshNode => {
    const openedNode = resources.openNode({
      id: 'router~10.9.0.1~front.edge~edge.svc.cluster.local',
      cluster: 'front',
      metadata: { NAMESPACE: 'edge' },
      ...nodeFields,
    });
    if ('error' in openedNode) throw new Error(openedNode.error);
    return openedNode.resources as MeshNode;
  };
  const namesOf = (node: MeshNode): string[] => [...node.get(secretType, requestedNames)!.resources.keys()];
  const verifiedIdentity = 'spiffe://cluster.local/ns/edge/sa/front';

  it("is denied before the API server's decision and after a revocation, unlike access to ConfigMaps", () => {
    const node = gateway({ verifiedIdentity });
    expect(namesOf(node)).toEqual([requestedNames[0]]);
    expect(requestedAccounts.splice(0)).toEqual([['edge/front']]);
    access.setAllowed('edge/front', true);
    expect(namesOf(node)).toEqual(requestedNames);
    access.setAllowed('edge/front', false);
    expect(namesOf(node)).toEqual([requestedNames[0]]);
    node.close();
    expect(requestedAccounts.splice(0)).toEqual([[]]);
  });

  it('delays the response to a Secret request until the API server has decided', () => {
    const references: string[][] = [];
    const onCredentialsNeeded = (_: object, requestedAccounts: readonly { kind: string; name: string }[]): void =>
      void references.push(requestedAccounts.map(({ kind, name }) => `${kind} ${name}`));
    const waitingNode = new MeshResources({
      ...{ context: () => world.state.context, cache: world.cache, secretAccess: access, onCredentialsNeeded },
    }).openNode({
      ...{ id: 'router~10.9.0.1~front.edge~edge.svc.cluster.local', cluster: 'front', verifiedIdentity },
      metadata: { NAMESPACE: 'edge' },
    });
    if ('error' in waitingNode) throw new Error(waitingNode.error);
    const node = waitingNode.resources as MeshNode;
    const names = ['kubernetes://one', 'kubernetes://other/one'];
    expect(node.get(secretType, names)).toBeUndefined();
    // Until the decision, Secrets of the node's own namespace are read.
    expect(references).toEqual([['Secret one']]);
    access.setAllowed('edge/front', false);
    expect([...node.get(secretType, names)!.resources.keys()]).toEqual([]);
    access.setAllowed('edge/front', true);
    expect([...node.get(secretType, names)!.resources.keys()]).toEqual(['kubernetes://one']);
    node.close();
    expect(references).toEqual([['Secret one'], []]);
    requestedAccounts.splice(0);
  });

  it('determines whether a client can learn that a Secret exists', () => {
    const unauthenticated = gateway({});
    const node = gateway({ verifiedIdentity });
    const name = 'kubernetes://one';
    expect([unauthenticated, node].map((one) => one.credentialReading(name))).toEqual(['denied', 'unread']);
    namesOf(node);
    expect(node.credentialReading(name)).toBe('unread');
    access.setAllowed('edge/front', false);
    expect(node.credentialReading(name)).toBe('denied');
    expect(node.credentialReading('configmap://ca-cacert')).toBeUndefined();
    expect(node.credentialReading('kubernetes://other/one')).toBe('denied');
    access.setAllowed('edge/front', true);
    expect(node.credentialReading(name)).toBeUndefined();
    node.close();
    requestedAccounts.splice(0);
  });

  it('ends with the last proxy of an account, and ignores a late decision', () => {
    const [first, secondGateway] = [gateway({ verifiedIdentity }), gateway({ verifiedIdentity })];
    namesOf(first);
    namesOf(secondGateway);
    access.setAllowed('edge/front', true);
    first.close();
    expect(namesOf(secondGateway)).toEqual(requestedNames);
    secondGateway.close();
    expect(namesOf(secondGateway)).toEqual([requestedNames[0]]);
    access.setAllowed('edge/front', true);
    expect(namesOf(gateway({ verifiedIdentity }))).toEqual([requestedNames[0]]);
  });

  it('is not requested for a client that needs no Secrets or is unauthenticated', () => {
    requestedAccounts.splice(0);
    gateway({ verifiedIdentity: 'spiffe://cluster.local/ns/edge/sa/quiet' }).get(secretType, ['configmap://ca-cacert']);
    expect(namesOf(gateway({ secretsUnverified: true }))).toEqual(requestedNames);
    expect(requestedAccounts).toEqual([]);
  });
});

describe('a Secret of another namespace', () => {
  const name = 'kubernetes://certs/web';
  const grant = (to: object = {}): Config =>
    givenObject('ReferenceGrant', 'certs', 'grant', {
      from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'edge' }],
      to: [{ group: '', kind: 'Secret', ...to }],
    });
  const withdrawn = { 'ReferenceGrant/certs/grant': undefined };
  const gatewayFields = { namespace: 'edge', type: 'router', secrets: true } as const;
  const namesOf = (node: MeshNode, requestedNames: readonly string[] = [name]): string[] => [
    ...node.get(secretType, requestedNames)!.resources.keys(),
  ];

  it('is served to a gateway while a ReferenceGrant permits it for the Gateways of that namespace', () => {
    const world = new GivenWorld([secret('certs', 'web')]);
    const edge = world.connect('10.9.0.1', gatewayFields);
    const requestedNames = [name];
    expect(namesOf(edge, requestedNames)).toEqual([]);
    expect(edge.typesToPush(world.put(grant()), [clusterType, secretType])).toEqual([secretType]);
    expect(namesOf(edge, requestedNames)).toEqual([name]);
    expect(edge.typesToPush(world.change(withdrawn), [clusterType, secretType])).toEqual([secretType]);
    expect(namesOf(edge, requestedNames)).toEqual([]);
  });

  it('is pushed after a change only to gateways with a grant', () => {
    const world = new GivenWorld([secret('certs', 'web'), grant({ name: 'web' })]);
    const edge = world.connect('10.9.0.1', gatewayFields);
    const shop = world.connect('10.9.0.2', { ...gatewayFields, namespace: 'shop' });
    const previous = secretVersions(edge, [name]).get(name);
    expect(namesOf(shop)).toEqual([]);
    const change = world.put(secret('certs', 'web'));
    expect(shop.typesToPush(change, [secretType])).toEqual([]);
    expect(edge.typesToPush(change, [secretType])).toEqual([secretType]);
    expect(secretVersions(edge, [name]).get(name)).not.toBe(previous);
  });

  it('is not served to sidecars or to gateways of other namespaces', () => {
    const world = new GivenWorld([secret('certs', 'web'), grant()]);
    expect(namesOf(world.connect('10.9.0.1', { ...gatewayFields, type: 'sidecar' }))).toEqual([]);
    expect(namesOf(world.connect('10.9.0.2', { ...gatewayFields, namespace: 'shop' }))).toEqual([]);
    expect(namesOf(world.connect('10.9.0.3', { ...gatewayFields, secrets: false }))).toEqual([]);
  });

  it('includes the CA certificates of a separate object only if the grant covers that object', () => {
    const roots = (object: string): Config =>
      givenObject('Secret', 'certs', object, {
        ...{ type: 'Opaque', data: {}, stringData: { 'ca.crt': authority.certificate } },
      });
    const requestedNames = ['kubernetes://certs/web-cacert'];
    const world = new GivenWorld([roots('web'), grant({ name: 'web' })]);
    const edge = world.connect('10.9.0.1', gatewayFields);
    expect(namesOf(edge, requestedNames)).toEqual(requestedNames);
    expect(edge.typesToPush(world.put(roots('web-cacert')), [secretType])).toEqual([secretType]);
    expect(namesOf(edge, requestedNames)).toEqual([]);
    expect(edge.typesToPush(world.put(grant()), [secretType])).toEqual([secretType]);
    expect(namesOf(edge, requestedNames)).toEqual(requestedNames);
  });
});
