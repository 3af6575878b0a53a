import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { timerName } from '../../runtime/trace/statechart.ts';

export interface TransitionTarget {
  readonly name: string;
  readonly source: AnyStateNode;
  readonly descriptor: string;
  readonly guard: string | undefined;
  readonly definition: AnyTransitionDefinition;
}

export interface Targets {
  readonly states: readonly AnyStateNode[];
  readonly transitions: readonly TransitionTarget[];
}

/** Excludes history nodes, which are never entered themselves, and the root, which is always active. */
export function targetsOf(machine: AnyStateMachine): Targets {
  const nodes = nodesBelow(machine.root);
  return {
    states: nodes.filter((node) => node !== machine.root && node.type !== 'history'),
    transitions: nodes.flatMap(transitionsOf),
  };
}

/** Returns text such as `running.live`; for the root, the machine ID in parentheses. */
export function nodeName(node: AnyStateNode): string {
  return node.path.length === 0 ? `(${node.id})` : node.path.join('.');
}

/** Returns text such as `after backoff`, `prepare is done` or `always`. */
export function descriptorName(descriptor: string): string {
  if (descriptor === '') return 'always';
  const timer = timerName(descriptor);
  if (timer !== undefined) return `after ${timer}`;
  const [, outcomeKind, kind, name] =
    /^xstate\.(done|error|snapshot)\.(actor|state|\w+)\.?(.*)$/.exec(descriptor) ?? [];
  if (outcomeKind === 'done') return kind === 'state' ? `${name} is finished` : `${name} is done`;
  if (outcomeKind === 'error') return `${name} fails`;
  return descriptor;
}

function nodesBelow(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states as Record<string, AnyStateNode>).flatMap(nodesBelow)];
}

function transitionsOf(source: AnyStateNode): TransitionTarget[] {
  const definitions = [
    ...[...source.transitions.values()].flat(),
    ...(source.always ?? []),
  ] as AnyTransitionDefinition[];
  const countByName = new Map<string, number>();
  return definitions.map((definition) => {
    const guard = definition.guard === undefined ? undefined : guardName(definition.guard);
    const to = definition.target?.map((node) => nodeName(node)).join(' and ') ?? 'stays';
    const baseDescription = `${nodeName(source)}: ${descriptorName(definition.eventType)}${guard === undefined ? '' : ` [${guard}]`} → ${to}`;
    const count = (countByName.get(baseDescription) ?? 0) + 1;
    countByName.set(baseDescription, count);
    const name = count === 1 ? baseDescription : `${baseDescription} (${count})`;
    return { name, source, descriptor: definition.eventType, guard, definition };
  });
}

interface GuardParts {
  readonly name?: string;
  readonly type?: string;
  readonly guards?: readonly unknown[];
  readonly stateValue?: unknown;
}

function guardName(guard: unknown): string {
  if (typeof guard === 'string') return guard;
  const { name, type, guards, stateValue } = guard as GuardParts;
  if (guards !== undefined) return `${name ?? type}(${guards.map(guardName).join(', ')})`;
  if (stateValue !== undefined) return `in ${JSON.stringify(stateValue)}`;
  return type ?? (name === '' ? 'an inline guard' : (name ?? 'a guard'));
}
