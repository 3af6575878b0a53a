import type { AnyStateMachine } from 'xstate';

type ProvidedImplementations<Machine extends AnyStateMachine> = Parameters<Machine['provide']>[0];

/** All actors are required, because a missing effect would fail only when its chart starts. */
export type ActorImplementations<
  Machine extends AnyStateMachine,
  Name extends keyof NonNullable<ProvidedImplementations<Machine>['actors']>,
> = {
  readonly [Key in Name]-?: NonNullable<NonNullable<ProvidedImplementations<Machine>['actors']>[Key]>;
};
