import { expect, it } from 'vitest';
import { parseSourceAddress } from '../xds/source-address.ts';
import { configSources } from './config-sources.ts';

const sources = (configDir: string, registries: string[], ...addresses: string[]) =>
  configSources({ configDir, registries }, { configSources: addresses.map((address) => ({ address })) });

it('configuration sources are the directory of the flag and then the sources of the mesh configuration, without duplicates', () => {
  expect(sources('/mesh', [], 'fs:///more', 'fs:///mesh', 'fs://relative/dir')).toEqual({
    sources: ['fs:///mesh', 'fs:///more', 'fs://relative/dir'],
    ignoredAddresses: new Map(),
  });
});

it('configuration sources are empty if none is specified and no registry is enabled', () => {
  expect(sources('', []).sources).toEqual([]);
});

it('configuration sources cause a startup error if they request services of a cluster and no cluster is configured', () => {
  expect(() => sources('', ['Kubernetes'])).toThrow('needs a cluster: this process does not run in a pod');
  expect(() => sources('', ['Kubernetes'], 'k8s://')).toThrow('k8s:// needs a cluster');
  expect(sources('/mesh', ['Kubernetes']).sources).toEqual(['fs:///mesh']);
});

it('configuration sources default to the cluster if the mesh configuration specifies none, and always include Services', () => {
  const cluster = ['k8s://', 'k8s://services'];
  const sourcesOf = (configDir: string, ...addresses: string[]) =>
    configSources(
      { configDir, registries: ['Kubernetes'], cluster },
      { configSources: addresses.map((address) => ({ address })) },
    ).sources;
  expect(sourcesOf('')).toEqual(cluster);
  expect(sourcesOf('/mesh')).toEqual(['fs:///mesh', ...cluster]);
  expect(sourcesOf('', 'fs:///more')).toEqual(['fs:///more', 'k8s://services']);
  expect(sourcesOf('', 'k8s://', 'fs:///more')).toEqual(['k8s://', 'fs:///more', 'k8s://services']);
  expect(() => sourcesOf('', 'k8s://services')).toThrow('k8s://services must be k8s://');
});

it('a configuration source with an unsupported or unknown scheme is ignored, with a reason', () => {
  const { sources: meshSources, ignoredAddresses } = sources(
    '',
    [],
    'mcp://pilot:15010',
    'ftp://host/dir',
    'fs:///mesh',
  );
  expect(meshSources).toEqual(['fs:///mesh']);
  expect([...ignoredAddresses]).toEqual([
    ['mcp://pilot:15010', 'mcp:// is not supported: use xds://HOST:PORT'],
    ['ftp://host/dir', 'unknown scheme ftp://'],
  ]);
});

it('configuration sources can be xDS servers', () => {
  const address = 'xds://[::1]:15010?optional=30s&versions=v1alpha3,v1&protocol=sotw';
  expect(sources('', [], address, 'xds://istiod:15010').sources).toEqual([address, 'xds://istiod:15010']);
  expect(parseSourceAddress(address)).toEqual({
    ...{ host: '::1', port: 15010, optionalMs: 30_000, versions: ['v1alpha3', 'v1'], protocol: 'sotw' },
  });
});

it.each([
  ['xds://istiod', 'must have a host and port'],
  ['xds://istiod:0', 'must have a host and port'],
  ['xds://istiod:15010/path', 'must have a host and port'],
  ['xds://istiod:15010?optinal=1s', 'unknown parameter "optinal"'],
  ['xds://istiod:15010?optional=soon', 'optional must be a duration such as 30s'],
  ['xds://istiod:15010?versions=one', 'versions must be a list such as v1,v1alpha3'],
  ['xds://istiod:15010?protocol=mcp', 'protocol must be auto, sotw or delta'],
])('the start fails if the xDS source address is %s', (address, reason) => {
  expect(() => sources('', [], address)).toThrow(reason);
});

it('the start fails if configuration sources are invalid', () => {
  expect(() => sources('', [], '/mesh')).toThrow('/mesh must be a URL');
  expect(() => sources('', [], 'fs://')).toThrow('fs:// must have a directory');
});
