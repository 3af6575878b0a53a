import { expect, it } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { supportedRegistries } from './registry-names.ts';

it('knows the registries of its own', () => {
  expect(supportedRegistries(['Kubernetes', 'Mock', 'Memory'])).toEqual(['Kubernetes', 'Mock', 'Memory']);
  expect(supportedRegistries([])).toEqual([]);
});

it('takes MCP for what it is: no registry of its own', () => {
  expect(supportedRegistries(['MCP'])).toEqual([]);
});

it('refuses what it cannot read', () => {
  expect(() => supportedRegistries(['Memory', 'Eureka'])).toThrow(
    codedError('FLAG_INVALID', { path: '--registries', got: 'Eureka' }),
  );
  expect(supportedRegistries(['Consul', 'Memory'])).toEqual(['Consul', 'Memory']);
});
