import type { Statechart, StatechartTransition } from '../../src/runtime/trace/statechart.ts';
import type { ActorSnapshot, RunningTimer } from '../../src/runtime/trace/trace.ts';
import { isActiveState } from '../../src/runtime/trace/trace-state.ts';

/** Includes parent states. Empty before a chart has started. */
export function activeStates(chart: Statechart, state: string): Set<number> {
  const stateNumbers = new Set<number>();
  if (state === '') return stateNumbers;
  chart.states.forEach(({ path }, number) => {
    if (isActiveState(path, state)) stateNumbers.add(number);
  });
  return stateNumbers;
}

export function activeLeaves(chart: Statechart, state: string): number[] {
  const paths = state.split(' | ');
  return chart.states.flatMap(({ path }, number) => (path !== '' && paths.includes(path) ? [number] : []));
}

export interface Countdown {
  readonly timer: string;
  /** Numbers of the transitions of the elapsed timer, one for each guard. */
  readonly transitions: readonly number[];
  readonly remainingMs: number;
  /** Decreases from 1 at the start to 0 at the end. */
  readonly remainingShare: number;
}

export function countdownsAt(chart: Statechart, timers: readonly RunningTimer[], t: number): Countdown[] {
  return timers.map(({ timer, state, ms, startedAt }) => {
    const remainingMs = Math.min(ms, Math.max(0, startedAt + ms - t));
    const transitions = chart.transitions.flatMap((transition, number) =>
      transition.kind === 'timer' && transition.on === timer && chart.states[transition.source]!.path === state
        ? [number]
        : [],
    );
    return { timer, transitions, remainingMs, remainingShare: ms === 0 ? 0 : remainingMs / ms };
  });
}

export function remainingTimeText(remainingMs: number): string {
  if (remainingMs >= 120_000) return `${Math.round(remainingMs / 60_000)} min left`;
  return remainingMs >= 10_000
    ? `${Math.round(remainingMs / 1000)} s left`
    : `${(remainingMs / 1000).toFixed(1)} s left`;
}

export function nextTransitionTexts(chart: Statechart, state: string): string[] {
  const activeNumbers = activeStates(chart, state);
  const labelTexts = chart.transitions
    .filter(
      ({ source, targets, actions }) => activeNumbers.has(source) && (targets.length > 0 || actions !== undefined),
    )
    .map((transition) => transitionText(chart, transition));
  return [...new Set(labelTexts)];
}

/** The innermost state is first, because an operator rarely waits for a transition of the root state. */
export function sortedTransitionTexts(chart: Statechart, state: string): string[] {
  const activeNumbers = activeStates(chart, state);
  const depth = (number: number): number => {
    const { parent } = chart.states[number]!;
    return parent === undefined ? 0 : 1 + depth(parent);
  };
  const labelTexts = chart.transitions
    .filter(({ source, targets }) => activeNumbers.has(source) && targets.length > 0)
    .sort((a, b) => depth(b.source) - depth(a.source))
    .map((transition) => transitionText(chart, transition));
  return [...new Set(labelTexts)];
}

export function transitionText(chart: Statechart, { kind, on, guard, targets }: StatechartTransition): string {
  const triggerText = { event: on, timer: `after ${on}`, always: 'always', done: `${on} done`, error: `${on} failed` }[
    kind
  ];
  const targetNames = targets.map((number) => chart.states[number]!.path || chart.id).join(', ');
  return `${triggerText}${guard === undefined ? '' : ` [${guard}]`} → ${targetNames === '' ? 'no state change' : targetNames}`;
}

/** For screen readers. */
export function chartText(chart: Statechart | undefined, actor: ActorSnapshot, sinceMs: number, t: number): string {
  const isStateless = chart?.states.length === 1;
  const state = actor.state === '' ? (isStateless ? 'no states' : 'not started') : actor.state;
  const sinceText = `since ${(sinceMs / 1000).toFixed(3)} s`;
  const timers = (actor.timers ?? []).map(
    ({ timer, startedAt, ms }) => `timer ${timer}, ${remainingTimeText(Math.min(ms, Math.max(0, startedAt + ms - t)))}`,
  );
  const nextTexts = chart === undefined ? [] : nextTransitionTexts(chart, actor.state);
  return [
    `${actor.actor}: ${state}, ${sinceText}`,
    ...timers,
    ...(nextTexts.length > 0
      ? [`next: ${nextTexts.slice(0, 12).join(', ')}${nextTexts.length > 12 ? ', …' : ''}`]
      : []),
  ].join('; ');
}
