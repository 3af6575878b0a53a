import { describe, expect, it } from 'vitest';
import type { Config } from './config.ts';
import { needsPush } from './config-changes.ts';

let version = 0;
const config = (name: string, overrides: Partial<Config> = {}): Config => ({
  kind: 'Gateway',
  apiVersion: 'networking.istio.io/v1',
  name,
  namespace: 'shop',
  labels: {},
  annotations: {},
  resourceVersion: String(++version),
  creationTimestamp: 0,
  spec: { servers: [] },
  ...overrides,
});

describe('a push to proxies for an updated object', () => {
  it('is not needed if the resource version is unchanged', () => {
    const a = config('a');
    expect(needsPush(a, { ...a, spec: {} })).toBe(false);
  });

  it('is needed if only the age changes, because the resource version does not include it', () => {
    const a = config('a');
    expect(needsPush(a, { ...a, creationTimestamp: 5 })).toBe(true);
  });

  it.each([
    ['an annotation of another project', { annotations: { note: 'x' } }, false],
    ["an annotation of Istio's", { annotations: { 'networking.istio.io/x': 'y' } }, true],
    ['the spec', { spec: { servers: [1] } }, true],
    ['the age', { creationTimestamp: 5 }, true],
    ['a label of a Gateway', { labels: { app: 'web' } }, false],
    ['the generation and the uid', { generation: 2, uid: 'other' }, false],
    ['the status', { status: { conditions: [] } }, true],
  ])('depends on which field changes: %s', (_, overrides, expected) => {
    expect(needsPush(config('a'), config('a', overrides))).toBe(expected);
  });

  it('is needed if labels of a WorkloadEntry change, because these are the labels of its workload', () => {
    const entry = { kind: 'WorkloadEntry' };
    expect(needsPush(config('a', entry), config('a', { ...entry, labels: { app: 'web' } }))).toBe(true);
  });
});
