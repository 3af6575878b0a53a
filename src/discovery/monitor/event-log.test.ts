import { describe, expect, it } from 'vitest';
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import { createLogger } from '../../runtime/output/log.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { logEvents, rejectionLine } from './event-log.ts';

const at = (line: number): ConfigProblem['place'] => ({ file: 'mesh/web.yaml', line });

const problem = (about: Partial<ConfigProblem>): ConfigProblem => ({
  severity: 'error',
  place: at(12),
  object: 'VirtualService shop/web',
  field: 'spec.http[0].timeout',
  message: 'must be a duration',
  ...about,
});

/** The log lines of an event, without time. */
function told(type: string, fields: object): string[] {
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line.trimEnd().split('\t').slice(1).join(' ')) });
  logEvents(
    {
      observe: (observer: (record: TraceRecord) => void) => {
        const event = { type, ...fields };
        observer({ kind: 'event', seq: 1, t: 0, from: 'config-controller', to: 'discovery', event });
        return () => {};
      },
    } as never,
    log,
  );
  return lines;
}

describe('the log', () => {
  it('names the addresses of HTTP, or says that there is none', () => {
    expect(told('http.listening', { addresses: ['127.0.0.1:8080', ':15014'] })).toEqual([
      expect.stringMatching(/HTTP on 127\.0\.0\.1:8080, :15014$/),
    ]);
    expect(told('http.listening', { addresses: [] })).toEqual([expect.stringMatching(/HTTP on no address$/)]);
  });

  it('says once in a minute that a name of gateways does not resolve, and how often that was', () => {
    const lines: string[] = [];
    const log = createLogger({ write: (line) => lines.push(line) });
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
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/warn.*gw\.example\.com does not resolve \(1\.1\.1\.1 stays in force\).*SERVFAIL/);
    expect(lines[1]).toContain('there is no way through its gateways');
    stop();
    expect(lines).toHaveLength(3);
    expect(lines[2]).toMatch(/gw\.example\.com.*8/);
  });

  it('says in one line what is wrong with an object, and where', () => {
    const second = problem({ place: at(14), field: 'spec.hosts', message: 'is required' });
    expect(told('configs.rejected', { problems: [problem({}), second] })).toEqual([
      'error config-controller mesh/web.yaml:12: VirtualService shop/web: spec.http[0].timeout: must be a duration; ' +
        'line 14: spec.hosts: is required (an earlier version that was good, if there is one, stays in force)',
    ]);
  });

  it('says each object by itself, and does not go on for ever', () => {
    const many = Array.from({ length: 9 }, (_, i) =>
      problem({ place: at(i + 1), object: '', field: '', message: 'YAML' }),
    );
    const lines = told('configs.rejected', { problems: [problem({}), ...many] });
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain('mesh/web.yaml:1: YAML; line 2: YAML');
    expect(lines[1]).toContain('and 4 more');
  });

  it('says of an object without a file which source it is in', () => {
    const place = { source: 'k8s://east' };
    const second = problem({ place, field: 'spec.hosts', message: 'is required' });
    expect(told('configs.rejected', { problems: [problem({ place }), second] })).toEqual([
      'error config-controller k8s://east: VirtualService shop/web: spec.http[0].timeout: must be a duration; ' +
        'spec.hosts: is required (an earlier version that was good, if there is one, stays in force)',
    ]);
    expect(told('configs.rejected', { problems: [problem({ place: { source: '' } })] })[0]).toMatch(
      /^error config-controller VirtualService shop\/web: spec/,
    );
  });

  it('tells a warning as one', () => {
    expect(told('configs.rejected', { problems: [problem({ severity: 'warning' })] })[0]).toMatch(/^warn .*duration$/);
  });

  it('names some of what is pushed', () => {
    const configs = ['a', 'b', 'c', 'd', 'e'].map((name) => `Gateway/shop/${name}`);
    expect(told('clients.push', { version: 'v/7', forced: false, configs })).toEqual([
      'info config-controller push v/7: Gateway/shop/a, Gateway/shop/b, Gateway/shop/c and 2 more',
    ]);
    expect(told('clients.push', { version: 'v/8', forced: true, configs: [] })[0]).toMatch(/push v\/8: everything$/);
  });
});

describe('that something was found wrong', () => {
  const line = (...problems: ConfigProblem[]) =>
    rejectionLine({
      ...{ kind: 'event', seq: 1, t: 0, from: 'config-controller', to: 'discovery' },
      event: { type: 'configs.rejected', problems },
    } as TraceRecord);

  it('is a warning where something was refused, with how much', () => {
    const warning = problem({ severity: 'warning' });
    expect(line(problem({}), warning, warning)).toEqual({
      ...{ level: 'warn', line: 'config-controller: configuration was refused' },
      fields: { reason: '1 error, 2 warnings' },
    });
  });

  it('is for information where all is in force', () => {
    expect(line(problem({ severity: 'warning' }))).toEqual({
      ...{ level: 'info', line: 'config-controller: configuration is taken, with warnings' },
      fields: { reason: '1 warning' },
    });
  });

  it('is told of nothing else', () => {
    const event = { type: 'registry.failed', reason: 'x' };
    expect(rejectionLine({ kind: 'event', seq: 1, t: 0, from: 'a', to: 'b', event } as TraceRecord)).toBeUndefined();
  });
});
