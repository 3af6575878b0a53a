/**
 * A machine's definition as data. A trace contains it, so that it can be drawn and read years later without the code
 * that wrote it (`docs/trace-format.md`).
 */
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition, StateValue } from 'xstate';
import type { Timeline } from '../../../machines/timeline.ts';

/** Parents, initial states, sources, targets and taken transitions are indexes into these lists. */
export interface Statechart {
  readonly id: string;
  /** Each state is after its parent; the machine itself is the first. */
  readonly states: readonly StatechartState[];
  readonly transitions: readonly StatechartTransition[];
  readonly timeline?: Timeline;
}

export interface StatechartState {
  /** As in traces, such as `running.settled`; empty for the machine itself. */
  readonly path: string;
  readonly parent?: number;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  readonly initial?: number;
  readonly description?: string;
  /** Categories, such as `serving`, that apply to the state and its descendants. */
  readonly tags?: readonly string[];
  readonly entry?: readonly string[];
  readonly exit?: readonly string[];
  readonly invoke?: readonly { readonly id: string; readonly src: string }[];
}

export interface StatechartTransition {
  readonly source: number;
  /** Indexes of states; empty if the transition has no target. */
  readonly targets: readonly number[];
  readonly kind: 'event' | 'timer' | 'always' | 'done' | 'error';
  /** The event's type, the delay's name, or the id of the actor that finished or failed; `always` has none. */
  readonly on: string;
  readonly guard?: string;
  readonly actions?: readonly string[];
  readonly description?: string;
}

interface DescribedState {
  readonly statechart: Statechart;
  readonly numbers: ReadonlyMap<AnyTransitionDefinition, number>;
}

const cachedDescriptions = new WeakMap<AnyStateMachine, DescribedState>();

/** The same definition results in the same data, whatever effects were provided. */
export function statechartOf(machine: AnyStateMachine): Statechart {
  return describe(machine).statechart;
}

export function transitionNumbers(machine: AnyStateMachine): ReadonlyMap<AnyTransitionDefinition, number> {
  return describe(machine).numbers;
}

/** Includes all machines that the roots may start by name, without duplicates. */
export function machinesOf(...roots: readonly AnyStateMachine[]): AnyStateMachine[] {
  const machinesById = new Map<string, AnyStateMachine>();
  const visit = (machine: AnyStateMachine): void => {
    if (machinesById.has(machine.id)) return;
    machinesById.set(machine.id, machine);
    for (const logic of Object.values(machine.implementations.actors)) if (isMachine(logic)) visit(logic);
  };
  for (const root of roots) visit(root);
  return [...machinesById.values()];
}

/** A foreign machine may be created by another copy of XState. */
export function isMachine(logic: unknown): logic is AnyStateMachine {
  return typeof logic === 'object' && logic !== null && 'implementations' in logic && 'root' in logic;
}

function describe(machine: AnyStateMachine): DescribedState {
  const cachedChart = cachedDescriptions.get(machine);
  if (cachedChart !== undefined) return cachedChart;
  const nodes = nodesBelow(machine.root);
  const stateNumbers = new Map(nodes.map((node, number) => [node, number]));
  const definitions = nodes.flatMap((node) => [...[...node.transitions.values()].flat(), ...(node.always ?? [])]);
  const { timeline } = (machine.root.meta ?? {}) as { timeline?: Timeline };
  const description: DescribedState = {
    statechart: {
      id: machine.id,
      states: nodes.map((node) => describeState(node, stateNumbers)),
      transitions: definitions.map((definition) => describeTransition(definition, stateNumbers)),
      ...(timeline !== undefined && { timeline }),
    },
    numbers: new Map(definitions.map((definition, number) => [definition, number])),
  };
  cachedDescriptions.set(machine, description);
  return description;
}

function nodesBelow(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(nodesBelow)];
}

function describeState(node: AnyStateNode, stateNumbers: ReadonlyMap<AnyStateNode, number>): StatechartState {
  const initialState = node.type === 'compound' ? node.initial.target?.[0] : undefined;
  const initial = initialState === undefined ? undefined : stateNumbers.get(initialState);
  const invoke = node.invoke.map(({ id, src }) => ({ id, src: typeof src === 'string' ? src : 'in place' }));
  return {
    path: node.path.join('.'),
    ...(node.parent !== undefined && { parent: stateNumbers.get(node.parent)! }),
    type: node.type,
    ...(initial !== undefined && { initial }),
    ...describedOf(node),
    ...(node.tags.length > 0 && { tags: node.tags }),
    ...withNames('entry', node.entry),
    ...withNames('exit', node.exit),
    ...(invoke.length > 0 && { invoke }),
  };
}

function describedOf(node: AnyStateNode): { description?: string } {
  const { waitsFor } = (node.meta ?? {}) as { waitsFor?: string };
  const lines = [node.description, waitsFor === undefined ? undefined : `Waits for ${waitsFor}.`];
  const description = lines.filter((line) => line !== undefined).join(' ');
  return description === '' ? {} : { description };
}

function describeTransition(
  definition: AnyTransitionDefinition,
  stateNumbers: ReadonlyMap<AnyStateNode, number>,
): StatechartTransition {
  const { source, target, guard, actions, description } = definition;
  return {
    source: stateNumbers.get(source)!,
    targets: (target ?? []).map((node) => stateNumbers.get(node)!),
    ...triggerOf(definition.eventType),
    ...(guard !== undefined && { guard: describeGuard(guard) }),
    ...withNames('actions', actions),
    ...(description !== undefined && { description }),
  };
}

function triggerOf(eventType: string): Pick<StatechartTransition, 'kind' | 'on'> {
  if (eventType === '') return { kind: 'always', on: '' };
  const timer = timerName(eventType);
  if (timer !== undefined) return { kind: 'timer', on: timer };
  const [, ending, actor] = /^xstate\.(done|error)\.(?:actor|state)\.(.+)$/.exec(eventType) ?? [];
  return ending === undefined ? { kind: 'event', on: eventType } : { kind: ending as 'done' | 'error', on: actor! };
}

/** XState's event of an elapsed delay is `xstate.after.<delay>.<state node id>`. */
export function timerName(eventType: string): string | undefined {
  return eventType.startsWith('xstate.after.') ? eventType.split('.')[2] : undefined;
}

function withNames<Key extends string>(key: Key, actions: readonly unknown[]): { [K in Key]?: string[] } {
  // The delays of `after` and the actors of `invoke` are actions of XState; other fields describe them.
  const names = actions.filter((action) => !isBuiltIn(action)).map(nameOf);
  return (names.length > 0 ? { [key]: names } : {}) as { [K in Key]?: string[] };
}

function isBuiltIn(action: unknown): boolean {
  const type = typeof action === 'function' ? (action as { type?: unknown }).type : undefined;
  if (type === 'xstate.cancel') return true;
  const { event } = (action ?? {}) as { event?: { type?: unknown } };
  return type === 'xstate.raise' && String(event?.type).startsWith('xstate.after.');
}

function nameOf(implementation: unknown): string {
  if (typeof implementation === 'string') return implementation;
  const { type, name } = implementation as { type?: unknown; name?: unknown };
  if (typeof type === 'string') return type.replace(/^xstate\./, '');
  return typeof name === 'string' && name !== '' ? name : 'in place';
}

function describeGuard(guard: unknown): string {
  if (typeof guard !== 'function') return nameOf(guard);
  const { guards, stateValue } = guard as { guards?: readonly unknown[]; stateValue?: unknown };
  if (stateValue !== undefined) return `in ${typeof stateValue === 'string' ? stateValue : JSON.stringify(stateValue)}`;
  if (guards === undefined) return nameOf(guard);
  const guardTexts = guards.map(describeGuard);
  // A bundler may have appended a number to the name.
  const combinator = guard.name.replace(/\d+$/, '');
  return combinator === 'not' ? `not ${guardTexts[0]}` : guardTexts.join(` ${combinator} `);
}

/** `serving.settled`; the paths of parallel regions joined with ` | `, in the order of the definition. */
export function stateName(value: StateValue | undefined): string {
  return value === undefined ? '' : leafPathsOf(value).join(' | ');
}

function leafPathsOf(value: StateValue): string[] {
  if (typeof value === 'string') return [value];
  return Object.entries(value).flatMap(([state, nestedValue]) => {
    const leaves = nestedValue === undefined ? [] : leafPathsOf(nestedValue);
    return leaves.length === 0 ? [state] : leaves.map((leaf) => `${state}.${leaf}`);
  });
}
