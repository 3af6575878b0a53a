/** Starts statecharts. Production and tests use the same functions; a test passes a virtual clock. */
import { type Actor, type ActorOptions, type AnyActorLogic, createActor, type SnapshotFrom } from 'xstate';
import type { Recorder } from '../trace/recorder.ts';

export interface RootOptions<TLogic extends AnyActorLogic> {
  id: string;
  input: ActorOptions<TLogic>['input'];
  recorder?: Recorder;
  clock?: ActorOptions<TLogic>['clock'];
  /** A failed root actor is a bug. Without this callback the error becomes an uncaught exception much later. */
  onError: (error: unknown) => void;
}

export function startRoot<TLogic extends AnyActorLogic>(logic: TLogic, options: RootOptions<TLogic>): Actor<TLogic> {
  const actor = createActor(logic, {
    id: options.id,
    input: options.input,
    ...(options.clock !== undefined && { clock: options.clock }),
    ...(options.recorder !== undefined && { inspect: options.recorder.inspect }),
  } as ActorOptions<TLogic>);
  actor.subscribe({ error: options.onError });
  return actor.start();
}

export function waitForActor<TLogic extends AnyActorLogic>(
  actor: Actor<TLogic>,
): Promise<SnapshotFrom<TLogic>['output']> {
  return new Promise((resolve, reject) => {
    const settleIfDone = (): void => {
      const snapshot = actor.getSnapshot() as { status: string; output?: unknown; error?: unknown };
      if (snapshot.status === 'done') resolve(snapshot.output as SnapshotFrom<TLogic>['output']);
      if (snapshot.status === 'error') reject(snapshot.error);
    };
    actor.subscribe({ next: settleIfDone, complete: settleIfDone, error: reject });
    settleIfDone();
  });
}
