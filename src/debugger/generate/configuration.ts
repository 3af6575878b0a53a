import type { AnyStateNode } from 'xstate';
import { matchesDescriptor } from '../../runtime/trace/event-descriptor.ts';
import type { MachineRun } from './machine-run.ts';
import { outcomesOf, payloadsOf, type SampledState, type Samples } from './samples.ts';
import type { Step } from './suite.ts';

export function possibleSteps(run: MachineRun, samples: Samples): Step[] {
  const { snapshot } = run;
  if (snapshot.status !== 'active') return [];
  const state: SampledState = { value: snapshot.value, context: snapshot.context };
  const handledEvents = new Set(run.activeNodes.flatMap((node) => [...node.transitions.keys()]));
  const handles = (type: string): boolean =>
    [...handledEvents].some((descriptor) => matchesDescriptor(type, descriptor));
  const types = new Set([
    ...[...handledEvents].filter((type) => type !== '' && !type.startsWith('xstate.') && !type.includes('*')),
    ...Object.keys(samples.events ?? {}).filter(handles),
  ]);
  const events = [...types].flatMap((type) =>
    payloadsOf(samples, type, state).map((payload): Step => ({ kind: 'event', event: { type, ...payload } })),
  );
  const outcomeSteps = run.effects.flatMap((effect) =>
    outcomesOf(samples, effect, state).flatMap((outcome): Step[] => {
      if ('error' in outcome) {
        return handles(`xstate.error.actor.${effect}`) ? [{ kind: 'error', effect, message: outcome.error }] : [];
      }
      if (!handles(`xstate.done.actor.${effect}`)) return [];
      return [{ kind: 'done', effect, ...(outcome.output !== undefined && { output: outcome.output }) }];
    }),
  );
  const nextTimer = run.nextTimers;
  return [...events, ...outcomeSteps, ...(nextTimer === undefined ? [] : [{ kind: 'delay' as const, ...nextTimer }])];
}

/** Runs with the same key behave identically from then on. */
export function configurationKey(run: MachineRun, samples: Samples, start: number): string {
  const { value, status, context, historyValue } = run.snapshot;
  const relevantContext = samples.relevant === undefined ? context : samples.relevant(context);
  const history = mapNodes(historyValue as Record<string, AnyStateNode[]>);
  return JSON.stringify(
    [start, value, status, relevantContext, history, run.effects, run.pendingTimers()],
    toPlainValue,
  );
}

function mapNodes(history: Record<string, AnyStateNode[]>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(history).map(([id, nodes]) => [id, nodes.map((node) => node.id)]));
}

/** Encodes values that JSON would omit, so that different contexts get different keys. */
function toPlainValue(_name: string, value: unknown): unknown {
  if (value instanceof Map) return ['map', ...value];
  if (value instanceof Set) return ['set', ...value];
  return typeof value === 'bigint' || typeof value === 'undefined' ? String(value) : value;
}
