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
    ['an annotation of another project', { annotations: { note: 'x' } }, 'not needed'],
    ["an annotation of Istio's", { annotations: { 'networking.istio.io/x': 'y' } }, 'needed'],
    ['the spec', { spec: { servers: [1] } }, 'needed'],
    ['the age', { creationTimestamp: 5 }, 'needed'],
    ['a label of a Gateway', { labels: { app: 'web' } }, 'not needed'],
    ['the generation and the uid', { generation: 2, uid: 'other' }, 'not needed'],
    ['the status', { status: { conditions: [] } }, 'needed'],
  ])('is $2 after a change of $0', (_, overrides, need) => {
    expect(needsPush(config('a'), config('a', overrides))).toBe(need === 'needed');
  });

  it('is needed if labels of a WorkloadEntry change, because these are the labels of its workload', () => {
    const entry = { kind: 'WorkloadEntry' };
    expect(needsPush(config('a', entry), config('a', { ...entry, labels: { app: 'web' } }))).toBe(true);
  });
});
