/** The actors that a chart names and its program provides, by name and with the types that the chart declares. */
import type { AnyStateMachine } from 'xstate';

type Provided<Machine extends AnyStateMachine> = Parameters<Machine['provide']>[0];

/** All required: an effect that is left out would fail only when its chart is started. */
export type ActorsOf<Machine extends AnyStateMachine, Name extends keyof NonNullable<Provided<Machine>['actors']>> = {
  readonly [Key in Name]-?: NonNullable<NonNullable<Provided<Machine>['actors']>[Key]>;
};
