/** Traces in which nearly every name occurs once; lists of names on the page must not grow with them. */

import { discoveryMachine } from '../../machines/discovery/discovery.machine.ts';
import { discoveryProgramMachines } from '../../machines/discovery/program-machines.ts';
import { adsConnectionMachine } from '../../machines/discovery/xds/ads-connection.machine.ts';
import { machinesOf, statechartOf } from '../../src/runtime/trace/statechart.ts';
import { formatTraceLine, type TraceRecord, traceVersion } from '../../src/runtime/trace/trace.ts';

/** Names that differ between actors, in addition to the actors' names. */
export interface ManyNames {
  readonly actors: number;
  /** Each actor has a separate machine that the header does not define. */
  readonly machines?: boolean;
  /** Each actor has a separate state, event and effect. */
  readonly words?: boolean;
  /** Each actor is spawned by the previous one. */
  readonly chain?: boolean;
  /** Each actor is an effect of the first one. */
  readonly effects?: boolean;
  /** One actor takes the steps of all others. */
  readonly one?: boolean;
}

/** A name of letters only, which belongs to no numbered series (unlike `ads-connection-17`). */
export function nameOf(number: number): string {
  let name = '';
  for (let remainder = number; ; remainder = Math.floor(remainder / 26) - 1) {
    name = String.fromCharCode(97 + (remainder % 26)) + name;
    if (remainder < 26) return `actor-${name}`;
  }
}

/** Lines of the trace, header first: two records per actor, or five with separate words. */
export function* manyNamesLines(options: ManyNames): Generator<string> {
  yield formatTraceLine({
    kind: 'header',
    version: traceVersion,
    program: 'pilot-discovery',
    pid: 1,
    startedAt: '2026-11-21T03:12:00.000Z',
    level: 'standard',
    machines: machinesOf(...discoveryProgramMachines).map(statechartOf),
  });
  let seq = 0;
  const line = (record: object): string => {
    seq++;
    return formatTraceLine({ ...record, seq, t: seq } as TraceRecord);
  };
  yield line({ kind: 'spawn', actor: 'discovery', machine: discoveryMachine.id });
  yield line({ kind: 'transition', actor: 'discovery', from: '', to: 'running', on: 'xstate.init', cause: seq });
  for (let number = 0; number < options.actors; number++) {
    const name = nameOf(number);
    if (options.one && number > 0) {
      const from = `state of ${nameOf(number - 1)}`;
      yield* namedRecordsOf(nameOf(0), from, name, line);
      continue;
    }
    const actor = options.effects ? `discovery/${name}` : name;
    const parent = options.chain && number > 0 ? nameOf(number - 1) : 'discovery';
    const machine = options.machines ? `machine of ${name}` : adsConnectionMachine.id;
    yield line({ kind: 'spawn', actor, parent, ...(options.effects !== true && { machine }) });
    if (options.words || options.one) yield* namedRecordsOf(actor, '', name, line);
    else if (options.effects !== true) {
      yield line({ kind: 'transition', actor, from: '', to: 'awaiting node', on: 'xstate.init' });
    }
  }
}

/** An event, a state, an effect and a timer of an actor, with a name. */
function* namedRecordsOf(
  actor: string,
  from: string,
  name: string,
  line: (record: object) => string,
): Generator<string> {
  const state = `state of ${name}`;
  yield line({ kind: 'event', from: 'discovery', to: actor, event: { type: `event of ${name}` } });
  yield line({ kind: 'transition', actor, from, to: state, on: `event of ${name}` });
  yield line({ kind: 'effect', actor, effect: `effect of ${name}` });
  yield line({ kind: 'timer-started', actor, timer: `timer of ${name}`, state, ms: 1 });
}

export function manyNamesTrace(options: ManyNames): string {
  return [...manyNamesLines(options)].join('');
}
