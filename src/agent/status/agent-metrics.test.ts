import { expect, test } from 'vitest';
import type { RestartEnded, ServingReport } from '../../../machines/agent/protocol.ts';
import { DnsCounts } from '../dns/dns-counts.ts';
import { AgentMetrics } from './agent-metrics.ts';

/** Metrics with a test clock, and functions that send events with times of the trace's clock. */
function metrics(): {
  agent: AgentMetrics;
  clock: { now: number };
  serving: (event: ServingReport, t: number) => void;
  ended: (event: Partial<RestartEnded>) => void;
  lines: (name: string) => Promise<string[]>;
} {
  const clock = { now: 0 };
  const agent = new AgentMetrics(() => clock.now);
  const observe = (to: string, event: object, t: number): void =>
    agent.observe({ kind: 'event', from: 'supervisor', to, event: { type: '', ...event }, seq: 0, t });
  const restart = { name: 'epoch-1', epoch: 1, reason: 'ordered', how: 'hot restart', outcome: 'live' };
  return {
    agent,
    clock,
    serving: (event, t) => observe('status', event, t),
    ended: (event) => observe('agent', { type: 'restart.ended', ...restart, ...event }, 0),
    lines: async (name) => (await agent.text()).split('\n').filter((line) => line.startsWith(name)),
  };
}

const began = (name: string): ServingReport => ({
  type: 'serving.began',
  name,
  epoch: 0,
  baseId: 1,
  adminPort: 15_000,
  pid: 7,
});
const endedEvent: ServingReport = { type: 'serving.ended', reason: 'Envoy ended' };

test('counts each Envoy start by reason, method and outcome (agent §6.5)', async () => {
  const { ended, lines } = metrics();
  ended({});
  ended({});
  ended({ reason: 'out of memory', how: 'cold start', outcome: 'died' });
  const expected = [
    'istio_agent_envoy_restarts_total{reason="ordered",how="hot_restart",outcome="live"} 2',
    'istio_agent_envoy_restarts_total{reason="out_of_memory",how="cold_start",outcome="died"} 1',
  ];
  expect(await lines('istio_agent_envoy_restarts_total')).toEqual(expected);
  expect(await lines('istio_agent_envoy_restarts_total')).toEqual(expected);
});

test('reports each time to live once, in seconds, however often the metrics are read (agent §6.5)', async () => {
  const { ended, lines } = metrics();
  ended({ timeToLiveMs: 240 });
  await lines('');
  ended({ timeToLiveMs: 1_200 });
  ended({ outcome: 'died' });
  expect(await lines('istio_agent_envoy_time_to_live_seconds')).toEqual(
    expect.arrayContaining([
      'istio_agent_envoy_time_to_live_seconds_bucket{le="0.2"} 0',
      'istio_agent_envoy_time_to_live_seconds_bucket{le="0.3"} 1',
      'istio_agent_envoy_time_to_live_seconds_bucket{le="2"} 2',
      'istio_agent_envoy_time_to_live_seconds_sum 1.44',
      'istio_agent_envoy_time_to_live_seconds_count 2',
    ]),
  );
});

test('measures the time without a serving Envoy after the first one, including the current gap (agent §6.5)', async () => {
  const { clock, serving, lines } = metrics();
  const notServing = (): Promise<string[]> => lines('istio_agent_envoy_not_serving_seconds_total');
  serving(endedEvent, 0);
  clock.now = 5_000;
  expect(await notServing()).toEqual(['istio_agent_envoy_not_serving_seconds_total 0']);
  serving(began('epoch-0'), 600);
  serving(endedEvent, 10_000);
  // A full restart sends the event twice.
  serving(endedEvent, 10_100);
  clock.now = 5_250;
  expect(await notServing()).toEqual(['istio_agent_envoy_not_serving_seconds_total 0.25']);
  serving(began('epoch-0'), 10_500);
  clock.now = 99_000;
  expect(await notServing()).toEqual(['istio_agent_envoy_not_serving_seconds_total 0.5']);
  serving(began('epoch-1'), 20_000);
  expect(await notServing()).toEqual(['istio_agent_envoy_not_serving_seconds_total 0.5']);
});

test('reports the serving epoch, or the last one if none serves (agent §6.5)', async () => {
  const { serving, lines } = metrics();
  const gauge = (): Promise<string[]> => lines('istio_agent_envoy_serving{');
  expect(await gauge()).toEqual(['istio_agent_envoy_serving{epoch=""} 0']);
  serving(began('epoch-0'), 0);
  serving(began('epoch-0b'), 0);
  expect(await gauge()).toEqual(['istio_agent_envoy_serving{epoch="epoch-0b"} 1']);
  serving(endedEvent, 0);
  expect(await gauge()).toEqual(['istio_agent_envoy_serving{epoch="epoch-0b"} 0']);
});

test('reports an Envoy whose admin interface does not respond as not serving, until it responds or is replaced', async () => {
  const { agent, clock, serving, lines } = metrics();
  const values = async (): Promise<string[]> =>
    (await lines('istio_agent_envoy_'))
      .filter((line) => /serving\{|not_serving/.test(line))
      .map((line) => line.split(' ').at(-1)!)
      .sort();
  const hung = { by: 'admin', live: false, detail: 'no response', timedOut: true } as const;
  expect(agent.recordProbe(hung)).toBe('unchanged');
  serving(began('epoch-0'), 0);
  // The admin port moves during a hot restart.
  expect(agent.recordProbe({ by: 'admin', live: false, detail: 'connection refused' })).toBe('unchanged');
  expect(await values()).toEqual(['0', '1']);
  expect(agent.recordProbe(hung)).toBe('stopped responding');
  clock.now = 4_000;
  expect(agent.recordProbe(hung)).toBe('unchanged');
  expect(await values()).toEqual(['0', '4']);
  const draining = { by: 'admin', live: false, detail: 'DRAINING', responded: true } as const;
  expect([agent.recordProbe(draining), agent.recordProbe(draining)]).toEqual(['responds again', 'unchanged']);
  clock.now = 9_000;
  expect(await values()).toEqual(['1', '4']);
  agent.recordProbe(hung);
  clock.now = 10_000;
  serving(began('epoch-1'), 0);
  clock.now = 20_000;
  expect(await values()).toEqual(['1', '5']);
});

test('reports identity nowhere while the workload has no certificate', async () => {
  const agent = new AgentMetrics();
  let hasCertificate = false;
  agent.setIdentity({ source: 'authority', reason: 'the token t' });
  agent.withCertificate(() => hasCertificate);
  const lines = async () => (await agent.text()).split('\n').filter((line) => line.startsWith('istio_agent_identity'));
  expect(await lines()).toEqual([
    'istio_agent_identity{source="nowhere",reason="no certificate was obtained yet with the token t"} 1',
  ]);
  hasCertificate = true;
  expect(await lines()).toEqual(['istio_agent_identity{source="authority",reason="the token t"} 1']);
});

test('reports pending lines separately from lost ones, so that a full disk is visible (agent §6.5)', async () => {
  const log = { lost: 0, waiting: 12 };
  const agent = new AgentMetrics(undefined, () => ({ log, trace: { lost: 3, waiting: 0 } }));
  const lines = async () =>
    (await agent.text())
      .split('\n')
      .filter((line) => /_(lost|waiting)_lines/.test(line) && !line.startsWith('#'))
      .sort();
  expect(await lines()).toEqual([
    'istio_agent_lost_lines_total{of="log"} 0',
    'istio_agent_lost_lines_total{of="trace"} 3',
    'istio_agent_waiting_lines{of="log"} 12',
    'istio_agent_waiting_lines{of="trace"} 0',
  ]);
  log.waiting = 0;
  expect(await lines()).toContain('istio_agent_waiting_lines{of="log"} 0');
});

test('reports why the workload has no identity, with an escaped reason (agent §6.5)', async () => {
  const agent = new AgentMetrics();
  const lines = async () => (await agent.text()).split('\n').filter((line) => line.startsWith('istio_agent_identity'));
  expect(await lines()).toEqual([]);
  agent.setIdentity({ source: 'nowhere', reason: 'there is no token "a\\b"' });
  expect(await lines()).toEqual(['istio_agent_identity{source="nowhere",reason="there is no token \\"a\\\\b\\""} 1']);

  const servedMetrics = new AgentMetrics();
  servedMetrics.setIdentity({ source: 'files of services', reason: 'no address' });
  expect(await servedMetrics.text()).toContain(
    'istio_agent_identity{source="files_of_services",reason="no address"} 1',
  );
});

test.each([
  'startup_duration_seconds',
  'scrapes_total',
  'scrape_failures_total',
  'xds_proxy_requests',
  'xds_proxy_responses',
  'istiod_connection_failures',
  'istiod_connection_terminations',
  'envoy_connection_terminations',
  'num_file_watcher_failures_total',
  'dns_requests_total',
  'dns_upstream_requests_total',
  'dns_upstream_failures_total',
  'dns_upstream_request_duration_seconds',
])('exposes the metric %s before its first sample (agent §6.5)', async (name) => {
  const agent = new AgentMetrics();
  agent.withDns(new DnsCounts());
  expect(await agent.text()).toContain(`\n# TYPE istio_agent_${name} `);
});
