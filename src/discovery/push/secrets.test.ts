/** Secrets as connected gateways are served them. */

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

function served(node: MeshNode, asked: readonly string[] = names): Map<string, string> {
  return new Map([...node.get(secretType, asked)!.resources].map(([name, { version }]) => [name, version]));
}

describe('secrets of a namespace', () => {
  const world = new GivenWorld([secret('edge', 'one'), secret('edge', 'two'), secret('shop', 'one')]);
  const gateway = (identity?: string): MeshNode => {
    const opened = world.resources.open({
      id: 'router~10.9.0.1~front.edge~edge.svc.cluster.local',
      cluster: 'front',
      metadata: { NAMESPACE: 'edge' },
      ...(identity !== undefined && { verifiedIdentity: identity }),
    });
    if ('error' in opened) throw new Error(opened.error);
    return opened.resources as MeshNode;
  };

  it('are served to gateways that were found to be of it', () => {
    expect([...served(gateway('spiffe://cluster.local/ns/edge/sa/front')).keys()]).toEqual(names.slice(0, 2));
  });

  it('are served to nobody else', () => {
    expect(served(gateway()).size).toBe(0);
    expect(served(gateway('spiffe://cluster.local/ns/shop/sa/front')).size).toBe(0);
    expect(served(gateway('somebody')).size).toBe(0);
  });
});

describe('a Secret that changes', () => {
  it('is pushed to the gateways of its namespace, and changes no other secret', () => {
    const world = new GivenWorld([secret('edge', 'one'), secret('edge', 'two')]);
    const edge = world.connect('10.9.0.1', { namespace: 'edge', type: 'router', secrets: true });
    const shop = world.connect('10.9.0.2', { namespace: 'shop', type: 'router', secrets: true });
    const before = served(edge);
    served(shop);
    const made = world.encodings;
    const change = world.put(secret('edge', 'one'));
    expect(shop.typesToPush(change, [clusterType, secretType])).toEqual([]);
    expect(edge.typesToPush(change, [clusterType, secretType])).toEqual([secretType]);
    const after = served(edge);
    expect(after.get('kubernetes://one')).not.toBe(before.get('kubernetes://one'));
    expect(after.get('kubernetes://two')).toBe(before.get('kubernetes://two'));
    expect(world.encodings - made).toBe(1);
  });
});

describe('certificates of authorities', () => {
  const [first, second] = [createAuthority('first'), createAuthority('second')];
  const roots = (authority: typeof first): object => ({ 'ca.crt': authority.certificate });
  const inSecret = (name: string, authority: typeof first): Config =>
    givenObject('Secret', 'edge', name, { type: 'Opaque', data: {}, stringData: roots(authority) });
  const inConfigMap = (authority: typeof first): Config =>
    givenObject('ConfigMap', 'edge', 'ca', { data: roots(authority), binaryData: {} });
  const versionOf = (node: MeshNode, name: string): string | undefined => {
    return node.get(secretType, [name])!.resources.get(name)?.version;
  };

  it('follow a ConfigMap, and the Secret that is made for them alone', () => {
    const world = new GivenWorld([inConfigMap(first), inSecret('web', first)]);
    const about = { namespace: 'edge', type: 'router', secrets: true } as const;
    const node = world.connect('10.9.0.1', about);
    const names = ['configmap://ca-cacert', 'kubernetes://web-cacert'];
    const before = names.map((name) => versionOf(node, name));
    const changed = [inConfigMap(second), inSecret('web-cacert', second)];
    const after = changed.map((config, index) => {
      expect(node.typesToPush(world.put(config), [secretType])).toEqual([secretType]);
      return versionOf(node, names[index]!);
    });
    const anew = new GivenWorld([inConfigMap(second), inSecret('web', first), inSecret('web-cacert', second)]);
    expect(after).toEqual(names.map((name) => versionOf(anew.connect('10.9.0.1', about), name)));
    for (const index of [0, 1]) expect(after[index]).not.toBe(before[index]);
  });
});

describe('clusters of a gateway that has only those that are named', () => {
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

  it('follow the virtual services', () => {
    const world = new GivenWorld(objects, undefined, undefined, { onlyReferencedClusters: true });
    const node = world.connect('10.9.0.1', { namespace: 'edge', type: 'router' });
    expect(clusters(node)).toEqual(['outbound|80||a.test']);
    const change = world.put(virtualService('b.test'));
    expect(node.typesToPush(change, [clusterType])).toEqual([clusterType]);
    expect(clusters(node)).toEqual(['outbound|80||b.test']);
  });

  it('are all of them otherwise', () => {
    const node = new GivenWorld(objects).connect('10.9.0.1', { namespace: 'edge', type: 'router' });
    expect(clusters(node)).toEqual(['outbound|80||a.test', 'outbound|80||b.test']);
  });
});

describe('where an API server says who may have Secrets', () => {
  const world = new GivenWorld([
    secret('edge', 'one'),
    givenObject('ConfigMap', 'edge', 'ca', { data: { 'ca.crt': authority.certificate }, binaryData: {} }),
  ]);
  const asked = ['configmap://ca-cacert', 'kubernetes://one'];
  const access = new SecretAccess({
    server: { request: () => Promise.reject(new Error('not asked here')) },
    log: silentLogger,
  });
  const wanted: string[][] = [];
  access.watch((accounts) => wanted.push(accounts));
  const resources = new MeshResources({ context: () => world.state.context, cache: world.cache, secretAccess: access });
  const gateway = (about: object): MeshNode => {
    const opened = resources.open({
      id: 'router~10.9.0.1~front.edge~edge.svc.cluster.local',
      cluster: 'front',
      metadata: { NAMESPACE: 'edge' },
      ...about,
    });
    if ('error' in opened) throw new Error(opened.error);
    return opened.resources as MeshNode;
  };
  const namesOf = (node: MeshNode): string[] => [...node.get(secretType, asked)!.resources.keys()];
  const verifiedIdentity = 'spiffe://cluster.local/ns/edge/sa/front';

  it('none is served before it has, and none after it has taken that back; what is in a ConfigMap is served', () => {
    const node = gateway({ verifiedIdentity });
    expect(namesOf(node)).toEqual([asked[0]]);
    expect(wanted.splice(0)).toEqual([['edge/front']]);
    access.adopt('edge/front', true);
    expect(namesOf(node)).toEqual(asked);
    access.adopt('edge/front', false);
    expect(namesOf(node)).toEqual([asked[0]]);
    node.close();
    expect(wanted.splice(0)).toEqual([[]]);
  });

  it('a request for Secrets alone is not answered before the API server has said whether the account may have them', () => {
    const references: string[][] = [];
    const credentialsWanted = (_: object, wanted: readonly { kind: string; name: string }[]): void =>
      void references.push(wanted.map(({ kind, name }) => `${kind} ${name}`));
    const waiting = new MeshResources({
      ...{ context: () => world.state.context, cache: world.cache, secretAccess: access, credentialsWanted },
    }).open({
      ...{ id: 'router~10.9.0.1~front.edge~edge.svc.cluster.local', cluster: 'front', verifiedIdentity },
      metadata: { NAMESPACE: 'edge' },
    });
    if ('error' in waiting) throw new Error(waiting.error);
    const node = waiting.resources as MeshNode;
    const names = ['kubernetes://one', 'kubernetes://other/one'];
    expect(node.get(secretType, names)).toBeUndefined();
    // It is read meanwhile: those of its own namespace alone.
    expect(references).toEqual([['Secret one']]);
    access.adopt('edge/front', false);
    expect([...node.get(secretType, names)!.resources.keys()]).toEqual([]);
    access.adopt('edge/front', true);
    expect([...node.get(secretType, names)!.resources.keys()]).toEqual(['kubernetes://one']);
    node.close();
    expect(references).toEqual([['Secret one'], []]);
    wanted.splice(0);
  });

  it('whether a Secret exists is known only for a client that the API server allows to have it', () => {
    const nobody = gateway({});
    const node = gateway({ verifiedIdentity });
    const name = 'kubernetes://one';
    expect([nobody, node].map((one) => one.credentialReading(name))).toEqual(['denied', 'unread']);
    namesOf(node);
    expect(node.credentialReading(name)).toBe('unread');
    access.adopt('edge/front', false);
    expect(node.credentialReading(name)).toBe('denied');
    expect(node.credentialReading('configmap://ca-cacert')).toBeUndefined();
    expect(node.credentialReading('kubernetes://other/one')).toBe('denied');
    access.adopt('edge/front', true);
    expect(node.credentialReading(name)).toBeUndefined();
    node.close();
    wanted.splice(0);
  });

  it('an answer does not outlive the proxies of an account, nor comes one too late', () => {
    const [first, second] = [gateway({ verifiedIdentity }), gateway({ verifiedIdentity })];
    namesOf(first);
    namesOf(second);
    access.adopt('edge/front', true);
    first.close();
    expect(namesOf(second)).toEqual(asked);
    second.close();
    expect(namesOf(second)).toEqual([asked[0]]);
    access.adopt('edge/front', true);
    expect(namesOf(gateway({ verifiedIdentity }))).toEqual([asked[0]]);
  });

  it('who asks for no Secret is not asked about, nor who is not asked who it is', () => {
    wanted.splice(0);
    gateway({ verifiedIdentity: 'spiffe://cluster.local/ns/edge/sa/quiet' }).get(secretType, ['configmap://ca-cacert']);
    expect(namesOf(gateway({ secretsUnverified: true }))).toEqual(asked);
    expect(wanted).toEqual([]);
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
  const about = { namespace: 'edge', type: 'router', secrets: true } as const;
  const namesOf = (node: MeshNode, asked: readonly string[] = [name]): string[] => [
    ...node.get(secretType, asked)!.resources.keys(),
  ];

  it('is served to a gateway while a ReferenceGrant gives it to the Gateways of its namespace', () => {
    const world = new GivenWorld([secret('certs', 'web')]);
    const edge = world.connect('10.9.0.1', about);
    const asked = [name];
    expect(namesOf(edge, asked)).toEqual([]);
    expect(edge.typesToPush(world.put(grant()), [clusterType, secretType])).toEqual([secretType]);
    expect(namesOf(edge, asked)).toEqual([name]);
    expect(edge.typesToPush(world.change(withdrawn), [clusterType, secretType])).toEqual([secretType]);
    expect(namesOf(edge, asked)).toEqual([]);
  });

  it('is pushed to a gateway that it is granted to when it changes, and to no other', () => {
    const world = new GivenWorld([secret('certs', 'web'), grant({ name: 'web' })]);
    const edge = world.connect('10.9.0.1', about);
    const shop = world.connect('10.9.0.2', { ...about, namespace: 'shop' });
    const before = served(edge, [name]).get(name);
    expect(namesOf(shop)).toEqual([]);
    const change = world.put(secret('certs', 'web'));
    expect(shop.typesToPush(change, [secretType])).toEqual([]);
    expect(edge.typesToPush(change, [secretType])).toEqual([secretType]);
    expect(served(edge, [name]).get(name)).not.toBe(before);
  });

  it('is served to no sidecar, and to no gateway of another namespace', () => {
    const world = new GivenWorld([secret('certs', 'web'), grant()]);
    expect(namesOf(world.connect('10.9.0.1', { ...about, type: 'sidecar' }))).toEqual([]);
    expect(namesOf(world.connect('10.9.0.2', { ...about, namespace: 'shop' }))).toEqual([]);
    expect(namesOf(world.connect('10.9.0.3', { ...about, secrets: false }))).toEqual([]);
  });

  it('serves the authorities of an object of their own only if the grant covers that object', () => {
    const roots = (object: string): Config =>
      givenObject('Secret', 'certs', object, {
        ...{ type: 'Opaque', data: {}, stringData: { 'ca.crt': authority.certificate } },
      });
    const asked = ['kubernetes://certs/web-cacert'];
    const world = new GivenWorld([roots('web'), grant({ name: 'web' })]);
    const edge = world.connect('10.9.0.1', about);
    expect(namesOf(edge, asked)).toEqual(asked);
    expect(edge.typesToPush(world.put(roots('web-cacert')), [secretType])).toEqual([secretType]);
    expect(namesOf(edge, asked)).toEqual([]);
    expect(edge.typesToPush(world.put(grant()), [secretType])).toEqual([secretType]);
    expect(namesOf(edge, asked)).toEqual(asked);
  });
});
