import { describe, expect, it } from 'vitest';
import type { Config } from './config.ts';
import { configEvents } from './config-changes.ts';

let version = 0;
const config = (name: string, over: Partial<Config> = {}): Config => ({
  kind: 'Gateway',
  apiVersion: 'networking.istio.io/v1',
  name,
  namespace: 'shop',
  labels: {},
  annotations: {},
  resourceVersion: String(++version),
  creationTimestamp: 0,
  spec: { servers: [] },
  ...over,
});

describe('the events between two lists of objects', () => {
  it('are ordered by namespace, kind and name', () => {
    const [a, b, c] = [config('b'), config('c'), config('a', { namespace: 'x' })];
    const changed = config('b', { spec: { servers: [1] } });
    expect(configEvents([a, b], [c, changed])).toEqual([
      { type: 'update', previous: a, current: changed, needsPush: true },
      { type: 'delete', previous: b },
      { type: 'add', current: c },
    ]);
  });

  it('are none for equal versions', () => {
    const a = config('a');
    expect(configEvents([a], [{ ...a }])).toEqual([]);
  });

  it.each([
    ['an annotation of nobody', { annotations: { note: 'x' } }, false],
    ["an annotation of Istio's", { annotations: { 'networking.istio.io/x': 'y' } }, true],
    ['the spec', { spec: { servers: [1] } }, true],
    ['the status', { status: { conditions: [] } }, true],
  ])('need a push or not by what changed: %s', (_, over, needsPush) => {
    expect(configEvents([config('a')], [config('a', over)])).toMatchObject([{ type: 'update', needsPush }]);
  });
});
