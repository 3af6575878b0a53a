/** Collects garbage and returns pages of V8's heap to the system (chart `memory-release`). */
import { setFlagsFromString } from 'node:v8';
import { measureMemory, runInNewContext } from 'node:vm';
import { type Actor, type ActorOptions, fromCallback } from 'xstate';
import { memoryReleaseMachine } from '../../../machines/discovery/xds/memory-release.machine.ts';
import { startRoot } from '../../runtime/actors/actor-system.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';

export interface MemoryReleaseOptions {
  readonly logger: Logger;
  readonly recorder?: Recorder;
  readonly clock?: ActorOptions<typeof memoryReleaseMachine>['clock'];
}

export class MemoryRelease {
  readonly #actor: Actor<typeof memoryReleaseMachine>;
  #maxServedStreams = 0;

  constructor({ logger, recorder, clock }: MemoryReleaseOptions) {
    const onError = (error: unknown): void => logger.error('memory.releaseFailed', { error: messageOf(error) });
    this.#actor = startRoot(memoryReleaseWithEffects(logger, onError), {
      ...{ id: 'memory-release', input: undefined, onError },
      ...(recorder !== undefined && { recorder }),
      ...(clock !== undefined && { clock }),
    });
  }

  /** Called with the number of served proxies whenever it changes. Ignored after {@link stop}. */
  setServed(proxies: number): void {
    if (this.#actor.getSnapshot().status !== 'active') return;
    const maxServedBefore = this.#maxServedStreams;
    this.#maxServedStreams = proxies === 0 ? 0 : Math.max(maxServedBefore, proxies);
    if (proxies === 0 && maxServedBefore > 0)
      this.#actor.send({ type: 'proxies.disconnected', maxServed: maxServedBefore });
    else if (proxies > 0 && maxServedBefore === 0) this.#actor.send({ type: 'proxies.connected' });
  }

  stop(): void {
    this.#actor.stop();
  }
}

function memoryReleaseWithEffects(logger: Logger, onError: (error: unknown) => void): typeof memoryReleaseMachine {
  return memoryReleaseMachine.provide({
    actors: {
      collection: fromCallback(({ sendBack }) => {
        const reportCollected = (): void => sendBack({ type: 'garbage.collected' });
        collectIncrementally().catch(onError).then(reportCollected);
      }),
      release: fromCallback(({ sendBack, input }) => {
        const immediateTimer = setImmediate(() => {
          try {
            logger.debug('memory.released', { proxies: input.proxies, ...releasePages() });
          } catch (error) {
            onError(error);
          }
          sendBack({ type: 'memory.released' });
        });
        return () => clearImmediate(immediateTimer);
      }),
    },
  });
}

/** Collects the whole heap incrementally. Node exposes no other function for this: V8 measures memory by collecting garbage. */
async function collectIncrementally(): Promise<void> {
  await measureMemory({ mode: 'summary', execution: 'eager' });
}

type CollectGarbage = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void;

let collectGarbage: CollectGarbage | undefined;

/** Uses the flavor `last-resort`, because V8 otherwise keeps free pages for reuse. */
function releasePages(): { beforeMib: number; afterMib: number; pauseMs: number } {
  collectGarbage ??= exposedCollection();
  const residentBytes = process.memoryUsage.rss();
  const startedAt = performance.now();
  collectGarbage({ type: 'major', flavor: 'last-resort' });
  const pauseMs = Math.round(performance.now() - startedAt);
  return { beforeMib: mib(residentBytes), afterMib: mib(process.memoryUsage.rss()), pauseMs };
}

/** Creates no global function `gc`, which libraries might call. */
function exposedCollection(): CollectGarbage {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as CollectGarbage;
  setFlagsFromString('--no-expose-gc');
  return collectGarbage;
}

const mib = (bytes: number): number => Math.round(bytes / 1024 ** 2);
