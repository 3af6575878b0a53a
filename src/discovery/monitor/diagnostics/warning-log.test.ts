import { expect, onTestFinished, test, vi } from 'vitest';
import { recordingLog } from '../../../../test/harness/recording-log.ts';
import { type LoggableWarning, WarningLog } from './warning-log.ts';

class LogFixture {
  now = 0;
  readonly #recording = recordingLog();
  readonly #log = new WarningLog({ log: this.#recording.log, now: () => this.now });

  /** @returns objects of the lines, and numbers of omitted ones */
  record(...warnings: readonly LoggableWarning[]): unknown[] {
    const start = this.#recording.lines.length;
    this.#log.record(warnings);
    return this.#recording.lines.slice(start).map(({ object, objects }) => object ?? objects);
  }
}

function warning(name: string, changes: Partial<LoggableWarning> = {}): LoggableWarning {
  const [namespace = ''] = name.split('/');
  return {
    ...{ namespace, object: `VirtualService ${name}`, place: '', resourceVersion: '1' },
    ...{ code: 'SUBSET_NOT_FOUND', reason: 'no DestinationRule defines subset v2' },
    ...changes,
  };
}

const many = (namespace: string, count: number, resourceVersion = '1') =>
  Array.from({ length: count }, (_, i) => warning(`${namespace}/${i}`, { resourceVersion }));

test('a warning is logged once for each version of its object and set of codes, and again after it was resolved', () => {
  const fixture = new LogFixture();
  const web = warning('shop/web');
  expect(fixture.record(web)).toEqual(['VirtualService shop/web']);
  expect(fixture.record({ ...web, reason: 'another text' })).toEqual([]);
  expect(fixture.record({ ...web, resourceVersion: '2' })).toHaveLength(1);
  expect(fixture.record({ ...web, resourceVersion: '2', code: 'HOST_NOT_FOUND' })).toHaveLength(1);
  expect(fixture.record()).toEqual([]);
  expect(fixture.record({ ...web, resourceVersion: '2', code: 'HOST_NOT_FOUND' })).toHaveLength(1);
});

test('a namespace that changes its objects continuously gets few lines in an interval, and does not delay lines of other namespaces', () => {
  const fixture = new LogFixture();
  expect(fixture.record(...many('hostile', 200))).toHaveLength(6);
  for (let version = 2; version < 10; version++) {
    expect(fixture.record(...many('hostile', 200, `${version}`))).toEqual([]);
  }
  expect(fixture.record(...many('hostile', 200), warning('shop/web'))).toEqual(['VirtualService shop/web']);
  fixture.now += 600_000;
  // Those that were not logged yet.
  expect(fixture.record(...many('hostile', 7))).toEqual(['VirtualService hostile/5', 'VirtualService hostile/6']);
});

test('warnings beyond the limit of all namespaces are logged in later intervals, first of the namespaces that wait longest', () => {
  const fixture = new LogFixture();
  const all = Array.from({ length: 30 }, (_, i) => many(`n${i}`, 10)).flat();
  const namespaces = (): Set<unknown> =>
    new Set(fixture.record(...all).map((object) => String(object).replace(/\/.*/, '')));
  expect(namespaces()).toEqual(new Set([...Array.from({ length: 10 }, (_, i) => `VirtualService n${i}`), '250']));
  fixture.now += 600_000;
  expect(namespaces()).toEqual(new Set([...Array.from({ length: 10 }, (_, i) => `VirtualService n${i + 10}`), '200']));
});

test('warnings beyond the limits are logged in the next interval even if the mesh does not change', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const recording = recordingLog();
  new WarningLog({ log: recording.log, now: Date.now }).record(many('shop', 8));
  expect(recording.lines).toHaveLength(6);
  vi.advanceTimersByTime(600_000);
  expect(recording.lines.slice(6).map(({ object }) => object)).toEqual([
    'VirtualService shop/5',
    'VirtualService shop/6',
    'VirtualService shop/7',
  ]);
  vi.advanceTimersByTime(600_000);
  expect(recording.lines).toHaveLength(9);
});
