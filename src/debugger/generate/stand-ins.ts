/**
 * Prepares a machine to run in isolation: every actor that it starts is a stand-in that the steps of a test control.
 */
import { type AnyActorLogic, type AnyStateMachine, createMachine } from 'xstate';
import { scriptedPromise } from '../explore/scripted-effect.ts';

/** Runs until a step completes it, and accepts every event. */
const standInLogic = scriptedPromise(() => {}) as AnyActorLogic;

interface Invoke {
  readonly src: unknown;
}

interface StateConfig {
  readonly invoke?: Invoke | readonly Invoke[];
  readonly states?: Readonly<Record<string, StateConfig>>;
}

/** The same statechart with a stand-in for every actor and a no-op for every named action that is a plain function, because these are effects. */
export function withStandIns(machine: AnyStateMachine): AnyStateMachine {
  const { actors, actions, ...otherImplementations } = machine.implementations;
  const inlineActors: Record<string, AnyActorLogic> = {};
  const config = nameSources(machine.config as StateConfig, machine.id, inlineActors);
  return createMachine(
    config as never,
    {
      ...otherImplementations,
      actors: { ...mapValues(actors, () => standInLogic), ...inlineActors },
      actions: mapValues(actions, (action) => (isBuiltIn(action) ? action : () => {})),
    } as never,
  ) as AnyStateMachine;
}

/** False for logic that an action spawns without a name. */
export function isStandIn(actor: unknown): boolean {
  return (actor as { logic?: unknown }).logic === standInLogic;
}

function nameSources(config: StateConfig, statePath: string, namedLogics: Record<string, AnyActorLogic>): StateConfig {
  const nameSource = (invoke: Invoke, index: number): Invoke => {
    if (typeof invoke.src === 'string') return invoke;
    const name = `in place ${index} ${statePath}`;
    namedLogics[name] = standInLogic;
    // XState derives the ID of the invocation from its position, which is unchanged.
    return { ...invoke, src: name };
  };
  return {
    ...config,
    ...(config.invoke !== undefined && { invoke: [config.invoke].flat().map(nameSource) }),
    ...(config.states !== undefined && {
      states: Object.fromEntries(
        Object.entries(config.states).map(([key, state]) => [
          key,
          nameSources(state, `${statePath}.${key}`, namedLogics),
        ]),
      ),
    }),
  };
}

/**
 * Whether an action is `assign`, `sendTo`, `raise` or the like, which XState resolves. XState calls other functions.
 */
function isBuiltIn(action: unknown): boolean {
  return typeof action === 'function' && 'resolve' in action;
}

function mapValues<A, B>(
  record: Readonly<Record<string, A>> | undefined,
  convertValue: (value: A) => B,
): Record<string, B> {
  return Object.fromEntries(Object.entries(record ?? {}).map(([key, value]) => [key, convertValue(value)]));
}
