import { expect, it } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { supportedRegistries } from './registry-names.ts';

it('--registries accepts all supported registries', () => {
  expect(supportedRegistries(['Kubernetes', 'Mock', 'Memory'])).toEqual(['Kubernetes', 'Mock', 'Memory']);
  expect(supportedRegistries([])).toEqual([]);
});

it('--registries accepts MCP, but adds no registry for it', () => {
  expect(supportedRegistries(['MCP'])).toEqual([]);
});

it('--registries rejects unknown names', () => {
  expect(() => supportedRegistries(['Memory', 'Eureka'])).toThrow(
    codedError('FLAG_INVALID', { path: '--registries', got: 'Eureka' }),
  );
  expect(supportedRegistries(['Consul', 'Memory'])).toEqual(['Consul', 'Memory']);
});
