import { ChartpilotError } from '../../runtime/errors.ts';
import { ownValue } from '../../runtime/json-object.ts';

/** A machine's state, as far as samples may depend on it. */
export interface SampledState {
  readonly value: unknown;
  readonly context: Readonly<Record<string, unknown>>;
}

/** Fields of an event beside its type. */
export type Payload = Readonly<Record<string, unknown>>;

/** How an effect may end: with an output, or with an error's message. */
export type Outcome = { readonly output: unknown } | { readonly error: string };

/**
 * What a person tells about a machine that cannot be read off it: the exports of a samples module. All of it is optional,
 * and plain data wherever it goes into a test.
 */
export interface Samples {
  /** What the machine is started with. */
  readonly input?: unknown;
  /** Several inputs, in place of one: for a machine whose input decides where it may go. */
  readonly inputs?: readonly unknown[];
  /**
   * Payloads per event type; guards and actions run with them. An event type without samples is sent bare. A function
   * gets the state in which the event would be sent.
   */
  readonly events?: Readonly<Record<string, readonly Payload[] | ((state: SampledState) => readonly Payload[])>>;
  /** How effects end, per id of the invoked or spawned actor; one that is not named ends without output, and fails. */
  readonly outcomes?: Readonly<Record<string, readonly Outcome[] | ((state: SampledState) => readonly Outcome[])>>;
  /**
   * What of the context decides what happens later; all of it by default. Two configurations that agree in it are taken for
   * one, which keeps counters, logs and names from making endlessly many.
   */
  readonly relevant?: (context: Readonly<Record<string, unknown>>) => unknown;
  /**
   * What must hold in every state that is explored, by its name: true, or what is wrong in words. `value` is the state as XState
   * has it.
   */
  readonly invariants?: Readonly<Record<string, (state: SampledState) => boolean | string>>;
}

const bare: readonly Payload[] = [{}];
const endsEitherWay = (id: string): readonly Outcome[] => [{ output: undefined }, { error: `${id} failed` }];

/** One or more; undefined for a machine that takes nothing. */
export function inputsOf({ input, inputs }: Samples): readonly unknown[] {
  return inputs ?? [input];
}

export function payloadsOf(samples: Samples, type: string, state: SampledState): readonly Payload[] {
  const given = ownValue(samples.events, type);
  return typeof given === 'function' ? given(state) : (given ?? bare);
}

export function outcomesOf(samples: Samples, effect: string, state: SampledState): readonly Outcome[] {
  const given = ownValue(samples.outcomes, effect);
  return typeof given === 'function' ? given(state) : (given ?? endsEitherWay(effect));
}

const names = ['input', 'inputs', 'events', 'outcomes', 'relevant', 'invariants'] as const;

/** @throws ChartpilotError MACHINE_INVALID naming every mistake of the module's exports. */
export function readSamples(module: Readonly<Record<string, unknown>>, file: string): Samples {
  const errors = [
    ...Object.keys(module)
      .filter((name) => name !== 'default' && !(names as readonly string[]).includes(name))
      .map((name) => `unknown export ${name}; expected ${names.join(', ')}`),
    ...(['events', 'outcomes'] as const).flatMap((name) => listsIn(module[name], name)),
    ...functionsIn(module.invariants),
    ...(module.inputs === undefined || (Array.isArray(module.inputs) && module.inputs.length > 0)
      ? []
      : ['inputs must be a list with at least one item']),
    ...(module.input !== undefined && module.inputs !== undefined ? ['input and inputs are exclusive'] : []),
    ...(module.relevant === undefined || typeof module.relevant === 'function' ? [] : ['relevant must be a function']),
  ];
  if (errors.length > 0) {
    throw new ChartpilotError('MACHINE_INVALID', `${file}: ${errors.join('; ')}`, {
      hint: 'see docs/generating-tests.md for the exports of a samples module',
      fields: { path: file },
    });
  }
  return module as Samples;
}

function listsIn(record: unknown, name: string): string[] {
  if (record === undefined) return [];
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return [`${name} must be an object`];
  return Object.entries(record)
    .filter(([, value]) => !Array.isArray(value) && typeof value !== 'function')
    .map(([key]) => `${name}['${key}'] must be a list or a function that returns a list`);
}

function functionsIn(invariants: unknown): string[] {
  if (invariants === undefined) return [];
  if (typeof invariants !== 'object' || invariants === null) return ['invariants must be an object'];
  return Object.entries(invariants)
    .filter(([, value]) => typeof value !== 'function')
    .map(([key]) => `invariants['${key}'] must be a function`);
}
