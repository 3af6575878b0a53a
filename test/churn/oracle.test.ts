import { describe, expect, test } from 'vitest';
import { ChurnModel } from './churn-model.ts';
import { lateMs, Oracle } from './oracle.ts';

const id = { namespace: 'ns-1', service: 0 };
const cluster = 'outbound|8080||svc-0.ns-1.svc.cluster.local';

function createOracle() {
  const model = new ChurnModel(20);
  const oracle = new Oracle();
  const change = (kind: Parameters<ChurnModel['apply']>[0], atMs: number) =>
    oracle.recordChange(model.apply(kind, id), atMs);
  return { oracle, change };
}

describe('the explanation of a response', () => {
  test('a response is explained by a change of its service that affects the namespace and the type', () => {
    const { oracle, change } = createOracle();
    change('endpoints', 0);
    const none = { unexplained: [], late: [] };
    expect(oracle.explain('ns-0', 'EDS', [cluster], 100)).toEqual(none);
    expect(oracle.explain('ns-2', 'EDS', [cluster], 100)).toEqual({ unexplained: [cluster], late: [] });
    expect(oracle.explain('ns-0', 'CDS', [cluster], 100)).toEqual({ unexplained: [cluster], late: [] });
    expect(oracle.explain('ns-0', 'EDS', [`${cluster}x`], 100)).toEqual({ unexplained: [`${cluster}x`], late: [] });
    expect(oracle.explain('ns-0', 'EDS', [cluster], lateMs + 1)).toEqual({ unexplained: [], late: [cluster] });
  });

  test('a cluster that is removed within the lag of removals is not late', () => {
    const model = new ChurnModel(20);
    const oracle = new Oracle(1_000);
    oracle.recordChange(model.apply('leave', id), 0);
    const at = (kind: 'CDS' | 'RDS', ms: number) => oracle.explain('ns-0', kind, [cluster], lateMs + ms).late;
    expect([at('CDS', 1_000), at('CDS', 1_001)]).toEqual([[], [cluster]]);
  });

  test("any change that affects the proxy's routes explains a route response, and a change of its Sidecar object explains any response", () => {
    const { oracle, change } = createOracle();
    change('route', 0);
    expect(oracle.explain('ns-0', 'RDS', ['8080'], 100).unexplained).toEqual([]);
    expect(oracle.explain('ns-2', 'RDS', ['8080'], 100).unexplained).toEqual(['8080']);
    oracle.recordChange(new ChurnModel(1).apply('sidecar', { namespace: 'ns-6', service: 0 }), 0);
    expect(oracle.explain('ns-6', 'CDS', [cluster], 100).unexplained).toEqual([]);
  });
});

describe('the effect of a change', () => {
  test('the effect of a change is due after the limit, or at the end of the run', () => {
    const { oracle, change } = createOracle();
    change('endpoints', 0);
    expect(oracle.takeDue(lateMs - 1, false)).toEqual([]);
    const [dueEffect] = oracle.takeDue(lateMs, false);
    expect(dueEffect).toMatchObject({ sinceMs: 0, kind: 'EDS', name: cluster });
    expect(dueEffect!.namespaces.has('ns-0')).toBe(true);
    expect(oracle.takeDue(lateMs, true)).toEqual([]);
    change('endpoints', lateMs);
    expect(oracle.takeDue(lateMs, true)).toHaveLength(1);
  });

  test('no effect is due if the service was added or removed at about the same time', () => {
    const { oracle, change } = createOracle();
    change('leave', 0);
    change('return', 100);
    expect(oracle.takeDue(100, true)).toEqual([]);
    change('endpoints', 3 * lateMs);
    change('rule', 3 * lateMs + 100);
    expect(oracle.takeDue(4 * lateMs, true)).toHaveLength(2);
  });

  test('the effect of a removal is due later, and not at all if the service returns before', () => {
    const model = new ChurnModel(20);
    const oracle = new Oracle(20_000);
    oracle.recordChange(model.apply('leave', id), 0);
    expect(oracle.takeDue(lateMs + 19_999, false)).toEqual([]);
    expect(oracle.takeDue(lateMs + 20_000, false)).toMatchObject([
      { kind: 'CDS', name: cluster, effectKind: 'removal' },
    ]);
    oracle.recordChange(model.apply('return', id), 200_000);
    oracle.recordChange(model.apply('leave', id), 300_000);
    oracle.recordChange(model.apply('return', id), 300_000 + lateMs + 15_000);
    expect(oracle.takeDue(400_000, true)).toMatchObject([{ sinceMs: 200_000, effectKind: 'arrival' }]);
  });

  test('no effect is due in a namespace whose Sidecar object changed at about the same time', () => {
    const { oracle, change } = createOracle();
    change('endpoints', 0);
    oracle.recordChange(new ChurnModel(1).apply('sidecar', { namespace: 'ns-0', service: 0 }), 100);
    const [dueEffect] = oracle.takeDue(100, true);
    expect([dueEffect!.namespaces.has('ns-0'), dueEffect!.namespaces.has('ns-1')]).toEqual([false, true]);
  });
});
