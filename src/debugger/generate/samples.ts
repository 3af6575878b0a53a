import { ChartpilotError } from '../../runtime/errors.ts';
import { ownValue } from '../../runtime/json-object.ts';

export interface SampledState {
  readonly value: unknown;
  readonly context: Readonly<Record<string, unknown>>;
}

export type Payload = Readonly<Record<string, unknown>>;

export type Outcome = { readonly output: unknown } | { readonly error: string };

/** The exports of a samples module. Values that are written into a test must be plain data. */
export interface Samples {
  readonly input?: unknown;
  /** Alternative inputs, for a machine whose input affects its transitions. */
  readonly inputs?: readonly unknown[];
  /** Guards and actions run with these payloads. An event type without samples is sent without a payload. */
  readonly events?: Readonly<Record<string, readonly Payload[] | ((state: SampledState) => readonly Payload[])>>;
  /** By ID of the invoked or spawned actor. An effect without samples may succeed without output, or fail. */
  readonly outcomes?: Readonly<Record<string, readonly Outcome[] | ((state: SampledState) => readonly Outcome[])>>;
  /** Selects the part of the context that affects future behaviour. Configurations with equal parts are merged. */
  readonly relevant?: (context: Readonly<Record<string, unknown>>) => unknown;
  /** Conditions for every explored state: a function returns true, or a description of the violation. */
  readonly invariants?: Readonly<Record<string, (state: SampledState) => boolean | string>>;
}

const emptyPayloads: readonly Payload[] = [{}];
const successAndFailure = (id: string): readonly Outcome[] => [{ output: undefined }, { error: `${id} failed` }];

export function inputsOf({ input, inputs }: Samples): readonly unknown[] {
  return inputs ?? [input];
}

export function payloadsOf(samples: Samples, type: string, state: SampledState): readonly Payload[] {
  const sample = ownValue(samples.events, type);
  return typeof sample === 'function' ? sample(state) : (sample ?? emptyPayloads);
}

export function outcomesOf(samples: Samples, effect: string, state: SampledState): readonly Outcome[] {
  const sample = ownValue(samples.outcomes, effect);
  return typeof sample === 'function' ? sample(state) : (sample ?? successAndFailure(effect));
}

const names = ['input', 'inputs', 'events', 'outcomes', 'relevant', 'invariants'] as const;

/** @throws ChartpilotError MACHINE_INVALID */
export function readSamples(module: Readonly<Record<string, unknown>>, file: string): Samples {
  const errors = [
    ...Object.keys(module)
      .filter((name) => name !== 'default' && !(names as readonly string[]).includes(name))
      .map((name) => `unknown export ${name}; expected ${names.join(', ')}`),
    ...(['events', 'outcomes'] as const).flatMap((name) => stringListOf(module[name], name)),
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

function stringListOf(record: unknown, name: string): string[] {
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
