import { expect, it } from 'vitest';
import { configSources } from './config-sources.ts';

const sources = (configDir: string, registries: string[], ...addresses: string[]) =>
  configSources({ configDir, registries }, { configSources: addresses.map((address) => ({ address })) });

it("are the flag's directory, then the mesh's, each once", () => {
  expect(sources('/mesh', [], 'fs:///more', 'fs:///mesh', 'fs://relative/dir')).toEqual({
    sources: ['fs:///mesh', 'fs:///more', 'fs://relative/dir'],
    ignored: new Map(),
  });
});

it('are none when nobody names one and no registry is asked for', () => {
  expect(sources('', []).sources).toEqual([]);
});

it('must be some when the services of a cluster are asked for, and there is none', () => {
  expect(() => sources('', ['Kubernetes'])).toThrow('there is no cluster: this is no pod');
  expect(() => sources('', ['Kubernetes'], 'k8s://')).toThrow('k8s:// is a cluster, and none is followed');
  expect(sources('/mesh', ['Kubernetes']).sources).toEqual(['fs:///mesh']);
});

it("are the cluster's where the mesh names none, behind the flag's directory, and what its registry is made of in any case", () => {
  const cluster = ['k8s://', 'k8s://services'];
  const ofMesh = (configDir: string, ...addresses: string[]) =>
    configSources(
      { configDir, registries: ['Kubernetes'], cluster },
      { configSources: addresses.map((address) => ({ address })) },
    ).sources;
  expect(ofMesh('')).toEqual(cluster);
  expect(ofMesh('/mesh')).toEqual(['fs:///mesh', ...cluster]);
  expect(ofMesh('', 'fs:///more')).toEqual(['fs:///more', 'k8s://services']);
  expect(ofMesh('', 'k8s://', 'fs:///more')).toEqual(['k8s://', 'fs:///more', 'k8s://services']);
  expect(() => ofMesh('', 'k8s://services')).toThrow('k8s://services names what nobody knows');
});

it('are passed over, with a warning, when they are not supported yet or nobody knows what they are', () => {
  const { sources: found, ignored } = sources('', [], 'xds://istiod:15010', 'ftp://host/dir', 'fs:///mesh');
  expect(found).toEqual(['fs:///mesh']);
  expect([...ignored]).toEqual([
    ['xds://istiod:15010', 'xds:// is not supported yet'],
    ['ftp://host/dir', 'unknown scheme ftp://'],
  ]);
});

it('end the start when they make no sense', () => {
  expect(() => sources('', [], '/mesh')).toThrow('/mesh is no URL');
  expect(() => sources('', [], 'fs://')).toThrow('fs:// names no directory');
});
