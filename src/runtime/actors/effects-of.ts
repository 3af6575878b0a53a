import type { AnyStateMachine } from 'xstate';

type Provided<Machine extends AnyStateMachine> = Parameters<Machine['provide']>[0];

/** All actors are required, because a missing effect would fail only when its chart starts. */
export type ActorsOf<Machine extends AnyStateMachine, Name extends keyof NonNullable<Provided<Machine>['actors']>> = {
  readonly [Key in Name]-?: NonNullable<NonNullable<Provided<Machine>['actors']>[Key]>;
};
