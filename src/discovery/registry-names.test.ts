import { expect, it } from 'vitest';
import { supportedRegistries } from './registry-names.ts';

it('knows the registries of its own', () => {
  expect(supportedRegistries(['Kubernetes', 'Mock', 'Memory'])).toEqual(['Kubernetes', 'Mock', 'Memory']);
  expect(supportedRegistries([])).toEqual([]);
});

it('takes MCP for what it is: no registry of its own', () => {
  expect(supportedRegistries(['MCP'])).toEqual([]);
});

it('refuses what it cannot read', () => {
  expect(() => supportedRegistries(['Memory', 'Eureka'])).toThrow('service registry Eureka is not supported');
  expect(() => supportedRegistries(['Consul'])).toThrow('service registry Consul cannot be read yet');
});
