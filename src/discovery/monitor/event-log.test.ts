import { describe, expect, it } from 'vitest';
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import { type LoggedEvent, recordingLog } from '../../../test/harness/recording-log.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { discoveryLogEntry, logEvents } from './event-log.ts';

const at = (line: number): ConfigProblem['place'] => ({ file: 'mesh/web.yaml', line });

const problem = (overrides: Partial<ConfigProblem>): ConfigProblem => ({
  severity: 'error',
  place: at(12),
  object: 'VirtualService shop/web',
  field: 'spec.http[0].timeout',
  message: 'must be a duration',
  ...overrides,
});

function loggedEvents(type: string, fields: object, to = 'discovery'): LoggedEvent[] {
  const { log, lines } = recordingLog();
  logEvents(
    {
      observe: (observer: (record: TraceRecord) => void) => {
        const event = { type, ...fields };
        observer({ kind: 'event', seq: 1, t: 0, from: 'config-controller', to, event });
        return () => {};
      },
    } as never,
    log,
  );
  return lines;
}

const fromController = { scope: 'config-controller' };

describe('the log', () => {
  it('contains the configured HTTP addresses', () => {
    const line = { event: 'http.listening', level: 'info', ...fromController };
    expect(loggedEvents('http.listening', { addresses: ['127.0.0.1:8080', ':15014'] })).toEqual([
      { ...line, addresses: '127.0.0.1:8080, :15014' },
    ]);
    expect(loggedEvents('http.listening', { addresses: [] })).toEqual([{ ...line, addresses: '' }]);
  });

  it('reports an unresolvable gateway name once a minute, with the number of failures', () => {
    const { log, lines } = recordingLog();
    let observe: (record: TraceRecord) => void = () => {};
    const recorder = {
      observe(observer: typeof observe) {
        observe = observer;
        return () => {};
      },
    };
    const stop = logEvents(recorder as never, log);
    const fails = (hostname: string, addresses: string[]): void => {
      const event = { type: 'gateway-name.failed', hostname, addresses, reason: 'SERVFAIL' };
      observe({ kind: 'event', seq: 1, t: 0, from: 'gateway-name-1', to: 'gateway-names', event });
    };
    for (let i = 0; i < 9; i++) fails('gw.example.com', ['1.1.1.1']);
    fails('east.example.com', []);
    const line = { level: 'warn', scope: 'gateway-names', reason: 'SERVFAIL' };
    const west = { ...line, event: 'gateway-name.failed', hostname: 'gw.example.com', addresses: '1.1.1.1' };
    const east = { ...line, event: 'gateway-name.failed.none', hostname: 'east.example.com' };
    expect(lines).toEqual([west, east]);
    stop();
    expect(lines).toEqual([west, east, { ...west, repeated: 8 }]);
  });

  it('contains each error code of an object once', () => {
    const coded = (code: string) => problem({ code });
    const problems = [coded('FIELD_REQUIRED'), coded('FIELD_EMPTY'), coded('FIELD_REQUIRED'), problem({})];
    expect(loggedEvents('configs.rejected', { problems })).toMatchObject([
      { event: 'object.rejected', code: 'FIELD_REQUIRED, FIELD_EMPTY' },
    ]);
  });

  it('has one line per object with its location and all errors', () => {
    const secondProblem = problem({ place: at(14), field: 'spec.hosts', message: 'is required' });
    expect(loggedEvents('configs.rejected', { problems: [problem({}), secondProblem] })).toEqual([
      {
        ...{ event: 'object.rejected', level: 'error', ...fromController },
        ...{ place: 'mesh/web.yaml:12', object: 'VirtualService shop/web' },
        reason: 'spec.http[0].timeout: must be a duration; line 14: spec.hosts: is required',
      },
    ]);
  });

  it('contains the effect of a rejected restricting object until it is corrected', () => {
    const closedEffect = 'all requests are rejected';
    expect(loggedEvents('configs.rejected', { problems: [problem({ closed: closedEffect })] })).toMatchObject([
      { event: 'object.rejectedClosed', level: 'error', effect: closedEffect },
    ]);
  });

  it("limits the length of an object's line", () => {
    const manyProblems = Array.from({ length: 9 }, (_, i) =>
      problem({ place: at(i + 1), object: '', field: '', message: 'YAML' }),
    );
    const lines = loggedEvents('configs.rejected', { problems: [problem({}), ...manyProblems] });
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatchObject({
      place: 'mesh/web.yaml:1',
      reason: expect.stringMatching(/^YAML; line 2: YAML; .*; and 4 more$/),
    });
  });

  it('contains the source of an object without a file', () => {
    const objectPlace = { source: 'k8s://east' };
    const secondProblem = problem({ place: objectPlace, field: 'spec.hosts', message: 'is required' });
    expect(loggedEvents('configs.rejected', { problems: [problem({ place: objectPlace }), secondProblem] })).toEqual([
      {
        ...{ event: 'object.rejected', level: 'error', ...fromController },
        ...{ place: 'k8s://east', object: 'VirtualService shop/web' },
        reason: 'spec.http[0].timeout: must be a duration; spec.hosts: is required',
      },
    ]);
    const [withoutPlace] = loggedEvents('configs.rejected', { problems: [problem({ place: { source: '' } })] });
    expect(withoutPlace).toEqual(expect.not.objectContaining({ place: expect.anything() }));
    expect(withoutPlace).toMatchObject({ event: 'object.rejected', object: 'VirtualService shop/web' });
  });

  it("reports an object's warning at level warning", () => {
    expect(loggedEvents('configs.rejected', { problems: [problem({ severity: 'warning' })] })).toMatchObject([
      { event: 'object.warned', level: 'warn', reason: 'spec.http[0].timeout: must be a duration' },
    ]);
  });

  it('contains a sample of the changed objects of a push', () => {
    const configs = ['a', 'b', 'c', 'd', 'e'].map((name) => `Gateway/shop/${name}`);
    const line = { event: 'clients.push', level: 'info', ...fromController };
    expect(loggedEvents('clients.push', { version: 'v/7', forced: false, configs })).toEqual([
      { ...line, version: 'v/7', configs: 'Gateway/shop/a, Gateway/shop/b, Gateway/shop/c and 2 more' },
    ]);
    expect(loggedEvents('clients.push', { version: 'v/8', forced: true, configs: [] })).toEqual([
      { ...line, version: 'v/8', configs: '*' },
    ]);
  });

  it('has one line for an event that several actors forward', () => {
    const failedRegistry = { registry: 'Kubernetes/east', reason: 'refused' };
    expect(loggedEvents('registry.failed', failedRegistry, 'service-registry')).toEqual([]);
    expect(loggedEvents('registry.failed', failedRegistry)).toMatchObject([
      { event: 'registry.failed', level: 'warn', ...failedRegistry },
    ]);
  });
});

describe('the log summary of rejected configuration', () => {
  const entry = (...problems: ConfigProblem[]) =>
    discoveryLogEntry({
      ...{ kind: 'event', seq: 1, t: 0, from: 'config-controller', to: 'discovery' },
      event: { type: 'configs.rejected', problems },
    } as TraceRecord);

  it('is a warning with the numbers of errors and warnings if an object is rejected', () => {
    const warning = problem({ severity: 'warning' });
    expect(entry(problem({}), warning, warning)).toEqual({ event: 'configs.rejected', errors: 1, warnings: 2 });
  });

  it('is at level info if all objects are accepted', () => {
    const warning = problem({ severity: 'warning' });
    expect(entry(warning, { ...warning, object: 'Gateway shop/b' })).toEqual({
      ...{ event: 'configs.warned', errors: 0, warnings: 2 },
    });
  });

  it('is omitted for a single object, which has its own line', () => {
    expect(entry(problem({}), problem({ field: 'spec.other' }))).toBe('logged elsewhere');
  });

  it('excludes failures, which have their own lines', () => {
    const record = (type: string) =>
      ({ kind: 'event', seq: 1, t: 0, from: 'a', to: 'b', event: { type, reason: 'x' } }) as TraceRecord;
    expect(discoveryLogEntry(record('registry.failed'))).toBe('logged elsewhere');
    expect(discoveryLogEntry(record('kind.failed'))).toEqual({
      ...{ event: 'event.received', actor: 'a', type: 'kind.failed', reason: 'x' },
    });
    expect(discoveryLogEntry(record('source.failed'))).toBeUndefined();
  });
});
