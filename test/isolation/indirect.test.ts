/** Attacks that depend on a name that random objects do not find. */
import { expect, it } from 'vitest';
import type { Config } from '../../src/model/config/config.ts';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { allocateAddresses } from '../../src/model/services/auto-allocate.ts';
import { effectsOf, effectText } from './effects.ts';
import { changesBetween, type IsolationSettings, VictimMesh } from './victims.ts';

const closedSettings: IsolationSettings = { meshConfig: 'exportingNamespaces: [bank, shop]', allowedRoutes: 'Same' };

function entry(host: string, exportTo: string): readonly Config[] {
  const text = JSON.stringify({
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'ServiceEntry' },
    metadata: { name: 'attack', namespace: 'mallory', creationTimestamp: '2019-01-01T00:00:00Z' },
    spec: {
      ...{ hosts: [host], exportTo: [exportTo], resolution: 'STATIC', endpoints: [{ address: '10.66.0.1' }] },
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
    },
  });
  return readConfigFile('attack.yaml', text, { creationTimestamp: 0 }).configs;
}

function effects(settings: IsolationSettings, objects: readonly Config[]): readonly string[] {
  const mesh = new VictimMesh(settings);
  return effectsOf(changesBetween(mesh.baseline, mesh.servedWith(objects))).map(effectText);
}

it("a service that a namespace cannot see has no effect on the short names of the namespace's objects", () => {
  const settingsWithoutKubernetes = { ...closedSettings, registries: [] };
  expect(effects(settingsWithoutKubernetes, entry('terse.bank.svc.cluster.local', '.'))).toEqual([]);
  expect(effects(settingsWithoutKubernetes, entry('terse.bank.svc.cluster.local', '*'))).toEqual([]);
  expect(effects({ registries: [] }, entry('terse.bank.svc.cluster.local', '.'))).toEqual([]);
});

it('routes attached to a Service apply to namespaces that see the Service', () => {
  const attack = [
    {
      ...{ apiVersion: 'v1', kind: 'Service' },
      metadata: { name: 'mine', namespace: 'mallory', annotations: { 'networking.istio.io/exportTo': '.' } },
      spec: { clusterIP: '10.66.1.1', ports: [{ name: 'http', port: 80 }] },
    },
    {
      ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' },
      metadata: { name: 'mine', namespace: 'mallory' },
      spec: {
        parentRefs: [{ kind: 'Service', group: '', name: 'mine' }],
        rules: [{ backendRefs: [{ name: 'mine', port: 80 }] }],
      },
    },
  ];
  const text = attack.map((object) => JSON.stringify(object)).join('\n---\n');
  const { configs } = readConfigFile('attack.yaml', text, { creationTimestamp: 0 });
  expect(configs).toHaveLength(2);
  expect(effects({}, configs)).toEqual([]);
});

it("an older ServiceEntry of a namespace that is not allowed to export does not take another ServiceEntry's allocated address", () => {
  const victim = 'shop/allocated.example.com';
  const addressOf = (names: readonly string[]): string => allocateAddresses(names).get(victim)!.ipv4;
  const ownAddress = addressOf([victim]);
  // The first host xN.example.org that gets the victim's address: the search over N takes many seconds.
  const host = 'x125606.example.org';
  expect(allocateAddresses([`mallory/${host}`]).get(`mallory/${host}`)!.ipv4).toBe(ownAddress);
  expect(addressOf([`mallory/${host}`, victim])).not.toBe(ownAddress);
  expect(effects({}, entry(host, '.'))).toContainEqual(expect.stringContaining('allocated.example.com'));
  expect(effects(closedSettings, entry(host, '.'))).toEqual([]);
});
