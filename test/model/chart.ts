import { type AnyStateMachine, type AnyStateNode, StateMachine } from 'xstate';

/** States in which a chart can stay. Final states receive no events. */
export function leafStates(node: AnyStateNode): AnyStateNode[] {
  if (node.type === 'final') return [];
  const children = Object.values(node.states);
  return children.length === 0 ? [node] : children.flatMap(leafStates);
}

/** Event types for which the state or an ancestor has a transition, including an empty one: `'event.type': {}` means "ignored". */
export function handledTypes(node: AnyStateNode): Set<string> {
  const ownTypes = Object.keys((node.config as { on?: object }).on ?? {});
  return new Set([...ownTypes, ...(node.parent === undefined ? [] : handledTypes(node.parent))]);
}

/** A state's part of a chart's definition. */
interface StateDefinition {
  readonly states?: Readonly<Record<string, StateDefinition>>;
  readonly on?: object;
  readonly after?: object;
}

/** Removes a state's transitions on this event, or after this delay, from a definition. */
function withoutTransition(
  part: StateDefinition,
  [state, ...deeper]: readonly string[],
  at: 'on' | 'after',
  trigger: string,
): StateDefinition {
  if (state !== undefined) {
    return {
      ...part,
      states: { ...part.states, [state]: withoutTransition(part.states![state]!, deeper, at, trigger) },
    };
  }
  const handlers = { ...part[at] } as Record<string, unknown>;
  if (!(trigger in handlers)) throw new Error(`nothing happens there at ${trigger}`);
  delete handlers[trigger];
  return { ...part, [at]: handlers };
}

/** Replaces a state's transition on this event in a definition. */
function withTransition(
  part: StateDefinition,
  [state, ...deeper]: readonly string[],
  event: string,
  transition: object,
): StateDefinition {
  if (state === undefined) return { ...part, on: { ...part.on, [event]: transition } };
  const child = withTransition(part.states![state]!, deeper, event, transition);
  return { ...part, states: { ...part.states, [state]: child } };
}

/** Breaks a machine deliberately: the state at a path gets another transition on an event. */
export function chartWith<Machine extends AnyStateMachine>(
  machine: Machine,
  ...[state, event, transition]: readonly [state: string, event: string, transition: object]
): Machine {
  const { config, implementations } = machine;
  const changedConfig = withTransition(config as StateDefinition, state.split('.'), event, transition);
  return new StateMachine(changedConfig as never, implementations) as Machine;
}

/** A state by path, such as `streaming.congested`, and the transition to remove: on this event, or after this delay. */
export type RemovedTransition = readonly [state: string, at: 'on' | 'after', what: string];

/** Breaks a machine deliberately by removing a transition. */
export function chartWithout<Machine extends AnyStateMachine>(
  machine: Machine,
  ...[state, at, trigger]: RemovedTransition
): Machine {
  const { config, implementations } = machine;
  return new StateMachine(
    withoutTransition(config as StateDefinition, state.split('.'), at, trigger) as never,
    implementations,
  ) as Machine;
}
