/** Traces of the maximum size that users may open. */

import { discoveryMachine } from '../../machines/discovery/discovery.machine.ts';
import { discoveryProgramMachines } from '../../machines/discovery/program-machines.ts';
import { adsConnectionMachine } from '../../machines/discovery/xds/ads-connection.machine.ts';
import { routineMessages } from '../../machines/discovery/xds/ads-protocol.ts';
import { machinesOf, statechartOf } from '../../src/runtime/trace/statechart.ts';
import { formatTraceLine, type TraceRecord, type TraceSink, traceVersion } from '../../src/runtime/trace/trace.ts';
import { sized } from '../harness/size-of-run.ts';
import type { ScheduledEvent, Step } from '../simulation/random-schedule.ts';
import { writeRandomTrace } from '../simulation/random-search.ts';

/** Events of a sidecar over weeks, repeated. */
const weeks: readonly (readonly [number, ScheduledEvent])[] = [
  [20_000, { kind: 'certificate' }],
  [90_000, { kind: 'SIGHUP' }],
  [90_000, { kind: 'crash', target: 'serving' }],
  [90_000, { kind: 'certificate half written' }],
  [5_000, { kind: 'certificate' }],
  [90_000, { kind: 'ready?' }],
  [90_000, { kind: 'bootstrap refused' }],
  [1, { kind: 'certificate' }],
  [90_000, { kind: 'SIGUSR1' }],
  [90_000, { kind: 'oom', target: 'newest' }],
];

/** Simulating all records takes as long as all measurements, so the records of one run are repeated. */
const lives = sized({ short: 5, full: 1 });

/** A trace of consecutive agents with at least this many records. */
export const largeTrace = (records: number): string => repeatedTrace(agentTrace(records / lives), lives);

/** A trace of one agent in simulated weeks, with at least this many records. */
function agentTrace(records: number): string {
  // Every cycle has the same records except for the epoch numbers.
  const recordsPerCycle = agentRun(2).records - agentRun(1).records;
  return agentRun(Math.ceil(records / recordsPerCycle)).text;
}

/** Repeats a run as one trace: a million records in a tenth of the time to simulate them. */
export function repeatedTrace(trace: string, times: number): string {
  const headerEnd = trace.indexOf('\n') + 1;
  const [header, run] = [trace.slice(0, headerEnd), trace.slice(headerEnd)];
  const last = JSON.parse(run.trimEnd().split('\n').at(-1)!) as TraceRecord;
  const pauseMs = 1_000;
  const runs = Array.from({ length: times }, (_, previousRuns) =>
    run.replaceAll(/"(seq|cause|during|t)":(\d+(?:\.\d+)?)/g, (_whole, field: string, value: string) => {
      const offset = field === 't' ? last.t + pauseMs : last.seq;
      return `"${field}":${Number(value) + previousRuns * offset}`;
    }),
  );
  return header + runs.join('');
}

function agentRun(cycles: number): { text: string; records: number } {
  const lines: string[] = [];
  const sink: TraceSink = { write: (line) => void lines.push(formatTraceLine(line)), flush: () => {}, close: () => {} };
  const schedule: Step[] = Array.from({ length: cycles * weeks.length }, (_, step) => {
    const [ms, scheduledEvent] = weeks[step % weeks.length]!;
    return { gap: { ms }, scheduledEvent };
  });
  writeRandomTrace(
    { settings: 'short times', startConditions: 'in order', durationSeed: 0, steps: schedule, ending: 'in peace' },
    sink,
  );
  return { text: lines.join(''), records: lines.length - 1 };
}

/** A trace of a control plane to which this many Envoys connect. */
export function connectionsTrace(connections: number): string {
  const lines = [
    formatTraceLine({
      kind: 'header',
      version: traceVersion,
      program: 'pilot-discovery',
      pid: 1,
      startedAt: '2026-11-21T03:12:00.000Z',
      level: 'standard',
      machines: machinesOf(...discoveryProgramMachines).map(statechartOf),
      omits: routineMessages,
    }),
  ];
  let seq = 0;
  const write = (record: object): void => {
    seq++;
    lines.push(formatTraceLine({ ...record, seq, t: seq } as TraceRecord));
  };
  write({ kind: 'spawn', actor: 'discovery', machine: discoveryMachine.id });
  for (let number = 1; number <= connections; number++) {
    const actor = `ads-connection-${number}`;
    write({ kind: 'spawn', actor, machine: adsConnectionMachine.id });
    write({ kind: 'transition', actor, from: '', to: 'awaiting node', on: 'xstate.init', cause: seq });
    // The nodes of the last connections are not accepted yet.
    if (number > connections - 20) continue;
    write({
      kind: 'event',
      from: `${actor}/stream`,
      to: actor,
      event: { type: 'node.accepted', node: { id: `sidecar~${number}` } },
    });
    write({
      kind: 'transition',
      actor,
      from: 'awaiting node',
      to: 'streaming.caught up',
      on: 'node.accepted',
      cause: seq,
    });
  }
  return lines.join('');
}
